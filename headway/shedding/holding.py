"""Why nothing is dropped although there is too much to do, for people."""

from __future__ import annotations

from collections.abc import Sequence

from headway.shedding.forecasts import MARGIN

UNSHOWN = "queues did not show it: results are in time, or what waits does not grow as costs say"
_NAMED = 3


def nothing_allowed(strategy: str, outputs: Sequence[str], limits: Sequence[float]) -> str:
    """Return that a strategy finds no place to drop; whose limit is 0 is named."""
    spared = [name for name, most in zip(outputs, limits, strict=True) if not most > 0]
    text = f"'{strategy}' finds nothing that may be dropped"
    if not spared:
        return text
    listed = ", ".join(f"'{name}'" for name in spared[:_NAMED])
    more = f" and {len(spared) - _NAMED:,} more" if len(spared) > _NAMED else ""
    return f"{text}: {listed}{more} may lose nothing, by `shed` or because only others have a loss graph"


def does_not_pay(dropping: float, nothing: float) -> str:
    """Return that a forecast speaks against it: what outputs would be worth on average with it and without."""
    text = f"it would not pay: by a forecast outputs are worth {dropping:.3f} on average with it, {nothing:.3f} without"
    return f"{text}, and it has to gain {1 + MARGIN:g} times what is lost" if dropping > nothing else text
