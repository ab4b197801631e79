"""Things that travel unopened, so that processes which only pass them on need not import what they are made of.

A run on Spark starts several helper processes per query that see the unit's work go by. Importing all of Headway
took each of them a second. What is sealed comes the way that Spark's own code objects come, from the driver, over
connections that know a secret; it is never written to a state directory or read from one.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Content = TypeVar("Content")


class Sealed(Generic[Content]):
    """A value with a key by which processes recognise it; opened where it is used."""

    def __init__(self, key: str, content: Content) -> None:
        """Seal a value."""
        self.key = key
        self._content: Content | None = content
        self._packed = b""

    def open(self) -> Content:
        """Return the value."""
        if self._content is None:
            from pyspark import cloudpickle

            content: Content = cloudpickle.loads(self._packed)
            self._content = content
        return self._content

    def __getstate__(self) -> dict[str, Any]:
        """Travel packed, as Spark packs everything else that it sends."""
        if not self._packed:
            from pyspark import cloudpickle

            self._packed = cloudpickle.dumps(self._content)  # type: ignore[no-untyped-call]
        return {"key": self.key, "_content": None, "_packed": self._packed}
