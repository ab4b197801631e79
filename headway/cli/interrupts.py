"""Ctrl-C: the first one ends the run in good order, the second one at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """A context in which the first Ctrl-C is only noted, until `check` raises it.

    So an interrupt never falls into the middle of a box call, where it would cost tuples. A second one is raised
    wherever the process is, for a run that hangs.
    """

    def __init__(self) -> None:
        """Have seen none."""
        self._noted = 0
        self._raised = False
        self._installed = False

    def __enter__(self) -> Self:
        """Take over SIGINT, unless somebody else has, or this is not the main thread."""
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        """Give SIGINT back."""
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt, once, if there was one."""
        if self._noted and not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    @property
    def noted(self) -> bool:
        """Whether there was one."""
        return self._noted > 0

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted += 1
        if self._noted > 1:
            self._raised = True
            raise KeyboardInterrupt
