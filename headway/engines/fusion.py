"""Which boxes of a unit run as one kernel: chains of neighbouring filters and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def chains(
    boxes: Sequence[int], fusible: Callable[[int], bool], only_consumer: Callable[[int], int | None]
) -> tuple[tuple[int, ...], ...]:
    """Divide a traversal into calls: runs of boxes that are fused, or single boxes.

    Neighbours are fused when both are filters or maps and the second is the only consumer of the first.
    """
    calls: list[list[int]] = []
    for box in boxes:
        last = calls[-1][-1] if calls else None
        if last is not None and fusible(last) and fusible(box) and only_consumer(last) == box:
            calls[-1].append(box)
        else:
            calls.append([box])
    return tuple(tuple(call) for call in calls)
