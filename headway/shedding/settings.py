"""Settings of load shedding, from a network file or a call: ``schedule: {shed: {by: loss, headroom: 0.9, most: 0.8}}``.

`headroom` is the H of min_cap > C × H (Aurora, section 4.4): the share of the capacity that arrivals may use. The
limits are ours: how much an output may lose, and how much all outputs together (the red button).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headway.durations import Duration
from headway.errors import PolicyError, choices, did_you_mean, unknown, within
from headway.network.qos import QoS
from headway.options.settings import number, positive_time, read_settings, whole
from headway.shedding.strategies import Strategy, make_strategy, registered_strategies

DEFAULT_STRATEGY = "loss"
_FORMS = "off, on, a strategy, or a mapping"


@dataclass(frozen=True, slots=True)
class ShedSettings:
    """When and how much load is shed."""

    strategy: str = DEFAULT_STRATEGY
    by_value: bool = True
    """Whether outputs with a value graph lose their least valuable tuples first instead of random ones."""
    headroom: float = 0.9
    most: float = 0.95
    """The largest share that may be dropped of an output that is not in `outputs`."""
    most_in_all: float = 1.0
    """The largest share of all work that may be dropped; 1: no limit."""
    outputs: Mapping[str, float] = field(default_factory=dict)
    """By name: the largest share of an output that may be dropped."""
    allowed: tuple[str, ...] | None = None
    """Outputs that may lose tuples, besides `outputs`; None: those with a loss or value graph, all if none has one."""
    interval: Duration = Duration(500_000)  # noqa: RUF009 - frozen
    drain: Duration | None = None
    """The time in which a backlog should be worked off; None: half of the shortest good zone, from 2 s to 10 s."""
    hold: int = 2
    band: float = 0.05
    own: Strategy | None = None
    """A strategy that is not in the registry; `strategy` is then its name for people."""

    @classmethod
    def parse(cls, value: object) -> ShedSettings | None:
        """Parse the value of ``shed``; None if load shedding is off. Raises a PolicyError.

        Accepts settings objects as they are, and a Strategy object instead of a name. Names of outputs are checked
        when the network is known: see `limits`.
        """
        if value is None or value is False or value == "off":
            return None
        if isinstance(value, ShedSettings):
            return value
        if value is True or value == "on":
            return cls()
        if isinstance(value, Strategy):
            return cls(strategy=type(value).__name__, own=value)
        if isinstance(value, str):
            return cls(strategy=_strategy(value))
        if not isinstance(value, Mapping):
            raise PolicyError(
                f"shed: must be {_FORMS}, not {value!r}; strategies: {choices(_names())}; keys: {choices(KEYS)}"
            )
        made = value.get("by")
        if isinstance(made, Strategy):
            settings = cls.parse({key: one for key, one in value.items() if key != "by"})
            return None if settings is None else replace(settings, strategy=type(made).__name__, own=made)
        with within("shed"):
            read = read_settings(value, KEYS, "key")
        return cls(**{_FIELDS.get(key, key): one for key, one in read.items()})

    def limits(self, names: Sequence[str], qos: Sequence[QoS]) -> tuple[float, ...]:
        """Return the largest share that may be dropped by output of a network; 0: nothing.

        Raises a PolicyError if the settings name an output that is not among `names`.
        """
        for name in (*self.outputs, *(self.allowed or ())):
            if name not in names:
                raise PolicyError(f"shed: {unknown('output', name, names)}")
        if self.allowed is not None:
            may = {*self.allowed}
        else:
            may = {name for name, graphs in zip(names, qos, strict=True) if graphs.loss or graphs.value} or {*names}
        return tuple(self.outputs.get(name, self.most if name in may else 0.0) for name in names)

    def make_strategy(self) -> Strategy:
        """Return the strategy."""
        return make_strategy(self.strategy) if self.own is None else self.own


def _names() -> tuple[str, ...]:
    return tuple(entry.name for entry in registered_strategies())


def _strategy(name: str) -> str:
    if name not in _names():
        forms = [*_names(), "off", "on"]
        raise PolicyError(f"shed: no strategy is called '{name}'{did_you_mean(name, forms) or ';'} {choices(forms)}")
    return name


def _by(value: object) -> str:
    if not isinstance(value, str):
        raise PolicyError(f"must be the name of a strategy ({choices(_names())}), not {value!r}")
    if value not in _names():
        raise PolicyError(unknown("strategy", value, _names()))
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"must be true or false, not {value!r}")
    return value


_share = number("from 0 to 1", lambda share: 0 <= share <= 1)


def _outputs(value: object) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        raise PolicyError(f"must be shares by output, such as {{alarms: 0.1}}, not {value!r}")
    made = {}
    for name, share in value.items():
        with within(str(name)):
            made[str(name)] = _share(share)
    return made


def _allowed(value: object) -> tuple[str, ...]:
    names = [] if isinstance(value, str | Mapping) or not isinstance(value, Iterable) else list(value)
    # An empty list would allow no dropping at all: 'off' is the clear way to say so.
    if not names or not all(isinstance(name, str) for name in names):
        raise PolicyError(f"must be a list of outputs, such as [reports, charts], not {value!r}")
    return tuple(names)


_FIELDS = {"by": "strategy", "in_all": "most_in_all"}
"""By key: the field of ShedSettings, if its name differs."""
KEYS: Mapping[str, Callable[[Any], Any]] = {
    "by": _by,
    "by_value": _truth,
    "headroom": number("above 0, up to 1", lambda share: 0 < share <= 1),
    "most": _share,
    "in_all": _share,
    "outputs": _outputs,
    "allowed": _allowed,
    "interval": positive_time,
    "drain": positive_time,
    "hold": whole(1),
    "band": number("above 0, below 1", lambda share: 0 < share < 1),
}
"""By key of the mapping: the reader of its value."""
