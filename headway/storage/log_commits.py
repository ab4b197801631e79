"""Commits: one line of JSON for everything that entered at once. A commit is the only truth about the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.storage.checksums import seal, unseal
from headway.storage.segments import Segment
from headway.trains import Tick

Refusal = tuple[str, str, str, str]
"""A malformed row: its source, where it stands, how it begins, and why it was refused."""

_SEGMENT = Segment.__slots__


@dataclass(frozen=True, slots=True)
class Commit:
    """What one append put into the log.

    `issued` is the largest arrival number given so far, marks included; `end` the number of the end mark if it is
    in this commit. `positions` and `refused` count the tuples and the malformed rows of each source so far; `reached`
    is how long the run has gone on, in nanoseconds, without the time between its processes; `inputs` says of sources
    that are files which ones they are and how far they have been read (`headway.connectors.identity`).
    """

    sequence: int
    issued: int
    moment: int
    ticks: tuple[Tick, ...]
    end: int | None
    segments: Mapping[str, Segment]
    positions: Mapping[str, int]
    malformed: tuple[Refusal, ...]
    refused: Mapping[str, int]
    reached: int = 0
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def to_line(self) -> bytes:
        """Return the commit as one line of JSON, with a checksum."""
        values = {
            "sequence": self.sequence,
            "issued": self.issued,
            "moment": self.moment,
            "ticks": self.ticks,
            "end": self.end,
            "segments": {
                source: {name: getattr(segment, name) for name in _SEGMENT} for source, segment in self.segments.items()
            },
            "positions": dict(self.positions),
            "malformed": self.malformed,
            "refused": dict(self.refused),
            "reached": self.reached,
            "inputs": dict(self.inputs),
        }
        return seal(values) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Commit:
        """Read what `to_line` returned; a ValueError, KeyError or TypeError for anything else."""
        values = unseal(line.rstrip(b"\n"))
        return cls(
            int(values["sequence"]),
            int(values["issued"]),
            int(values["moment"]),
            tuple([Tick(number, moment) for number, moment in values["ticks"]]),
            values["end"],
            {source: Segment(**segment) for source, segment in values["segments"].items()},
            values["positions"],
            tuple([(source, where, text, why) for source, where, text, why in values["malformed"]]),
            values["refused"],
            int(values["reached"]),
            values["inputs"],
        )
