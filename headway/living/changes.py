"""Changes: what a seam does to every part of a running network. A pure function of two checked networks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headway.checking import CheckedNetwork


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change does, by names in the order of the network."""

    kept: tuple[str, ...] = ()
    """Boxes that go on with their state."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    """Boxes that keep no state, and are others after the seam, or read something else."""
    restarted: tuple[str, ...] = ()
    """Boxes that begin anew."""
    carried: tuple[str, ...] = ()
    """Boxes whose state stays although something before them changed."""
    flushed: tuple[str, ...] = ()
    """Boxes that end, and whose open windows are emitted."""
    sources_added: tuple[str, ...] = ()
    sources_removed: tuple[str, ...] = ()
    sources_changed: tuple[str, ...] = ()
    outputs_added: tuple[str, ...] = ()
    outputs_removed: tuple[str, ...] = ()
    outputs_changed: tuple[str, ...] = ()
    points_added: tuple[str, ...] = ()
    points_removed: tuple[str, ...] = ()
    points_changed: tuple[str, ...] = ()
    points_restarted: tuple[str, ...] = ()
    """Points whose history begins anew."""
    refreshed: tuple[str, ...] = ()
    """Dangling points whose data is read again."""
    schedule: tuple[str, ...] = ()
    """Keys of the schedule that changed."""
    affected: tuple[str, ...] = ()
    """Old boxes that end, are replaced, or whose input changes: replaced, restarted, carried and removed ones."""
    begins: tuple[str, ...] = ()
    """Boxes of the new network that begin at the seam: added, replaced and restarted ones."""

    def summary(self) -> str:
        """Return a short text for users."""
        raise NotImplementedError


def compare(
    old: CheckedNetwork,
    new: CheckedNetwork,
    restart: Collection[str] | str = (),
    keep: Collection[str] | str = (),
    flush: Collection[str] | str = (),
    *,
    refresh: Collection[str] = (),
) -> Changes:
    """Return what a change does, or raise a RunError that names the culprit and lists the choices."""
    raise NotImplementedError
