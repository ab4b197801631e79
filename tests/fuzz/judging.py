"""What a case may do, and what is a finding."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from headway.errors import HeadwayError

LONGEST = 3_000
Make = Callable[[Random, int, Path], None]


class WrongError(Exception):
    """A result that is not as it must be."""


class TooLongError(BaseException):
    """The case took longer than it may; no `except Exception` stops it."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is tried: the same kind, seed and size are the same case."""

    kind: str
    seed: int
    size: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}:{self.size}"

    @classmethod
    def parse(cls, text: str) -> Case:
        """Read what `str` wrote."""
        kind, seed, size = text.split(":")
        return cls(kind, int(seed), int(size))


def expect(holds: bool, what: str) -> None:
    """Raise WrongError if something does not hold."""
    if not holds:
        raise WrongError(what)


def judge(case: Case, make: Make) -> tuple[str, str] | None:
    """Carry a case out. Return None if all is well, else where it went wrong, for comparison, and a text for people."""
    stray: list[str] = []
    sys.unraisablehook = lambda one: stray.append(f"{type(one.exc_value).__name__} is ignored: {one.exc_value}")
    threading.excepthook = lambda one: stray.append("".join(traceback.format_exception(one.exc_value)))
    try:
        with TemporaryDirectory(prefix="headway-fuzz-") as folder:
            make(Random(str(case)), case.size, Path(folder))
    except HeadwayError as error:
        if len(str(error)) > LONGEST:
            return "long", f"a message of {len(str(error))} characters: {str(error)[:200]}"
    except WrongError as error:
        return f"wrong {str(error)[:30]}", f"{error}"
    except TooLongError:
        return "hang", "took too long:\n" + traceback.format_exc(limit=-6)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return _place(error), "".join(traceback.format_exception(error, limit=-8))
    return (f"stray {stray[0][:40]}", stray[0]) if stray else None


def _place(error: BaseException) -> str:
    """Return what and where: the exception, and the last line of ours that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/headway/" in frame.filename]
    last: Any = frames[-1] if frames else None
    return type(error).__name__ + (f" {Path(last.filename).name}:{last.lineno}" if last else f" {str(error)[:40]}")
