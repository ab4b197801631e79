"""The controller: when to shed load, how much of it, and when to stop.

Aurora (sections 4.4 and 4.5) sheds load under overload, and repeatedly until latency goals are met. Here that is a
control loop, called about every half second with observations that are noisy and late:

    needed = load + (backlog - allowance) / drain - capacity × headroom

is the work per second to be saved: arrivals beyond the usable capacity, plus the work that reduces, within `drain`
seconds, a backlog longer than good zones allow. A strategy turns it into shares to keep.

- *Hysteresis.* Shedding starts above a dead band, not at its lower end; while it is active, shares change only if
  their savings are off by more than the band for several observations in a row; it stops when no savings are needed.
- *Noise.* Small errors enter a slow mean; only large ones count as they are read.
- *Capacity* is not only measured. If queues grow although the cost model says that the work fits, the real capacity is
  lower: (kept - growth of the backlog) / busy time corrects it. So latency goals are met even with a wrong cost model.
  As this compares the flow with its prediction and not with the goal, it cannot wind up while nothing more may be
  dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.catalog import Topology
from headway.clock import SECOND
from headway.columns import Floats
from headway.fading import left_after, mixed
from headway.shedding.decisions import UNSHOWN, ControllerMemory, Decision, does_not_pay, nothing_allowed
from headway.shedding.diagnosis import BUSY, LATE, Observation, find_culprit, good_zones, outside_good_zone
from headway.shedding.forecasts import PAST, Outlook, kept_of
from headway.shedding.settings import ShedSettings
from headway.shedding.strategies import Demand, Strategy, work_saved

HALF_LIFE = 1.0
"""The default half-life, in seconds, of the rates and loads in observations."""
_AT_WORK = 0.8
"""The busy share of time above which the measured capacity is meaningful."""
_LEAST = 0.4
"""The share of the usable capacity that is always left for new tuples, however long the backlog."""
_AWAKE = 0.6
"""The busy share of time above which the flow of work is meaningful."""
_CHANCE = 1.5
"""Standard deviations of the load covered by the dead band: rare tuples that cause much work arrive unevenly."""
_SURE = 3.0
"""Multiples of the dead band above which an error is not noise."""
_SLOW = 2.0
"""Half-life in seconds of the mean of small errors."""
_CAPACITY = 5.0
"""Half-life in seconds of the measured capacity, which is noisy."""
_TRUST = 3.0
"""Half-life in seconds of its correction by the flow of work."""
_FORGET = 60.0
"""Half-life in seconds of that correction while the engine has little to do."""
_BOUNDS = (0.2, 2.0)
_SURPRISE = 0.25
"""The most by which one observation may contradict the correction: queues jump for other reasons, too."""
_DRAIN, _LONGEST = 2.0, 10.0
"""The default bounds, in seconds, of the time in which a backlog should be worked off."""
_LONG_STUCK = 4
"""Multiples of `hold` for which goals are missed before outputs lose tuples only to reduce the backlog."""
_AHEAD, _BELIEVED = 1.0, 0.1
"""The horizon of forecasts: so many seconds, plus this share of the time for which the overload has lasted."""
_LESS = (1.0, 0.75, 0.5, 0.25)
"""The shares of the needed savings that are compared: saving less may be worth more."""
_CLEAR = 1.3
"""The ratio of load to capacity above which half as many observations show that queues grow."""
_GROWS = 4
"""Observations whose smallest backlog is compared with that of as many before, since trains make backlogs fluctuate."""
_AGREES = 0.5
"""The share of the growth predicted from measured costs by which queues must grow."""
_SAME = 1e-3
"""Shares that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class _Case:
    """An evaluated observation; in seconds of work per second unless stated otherwise."""

    load: float
    can_do: float
    fits: float
    surplus: float
    """Seconds of waiting work beyond what good zones allow."""
    wanted: float
    """What should be saved; below 0 if there is capacity to spare."""
    needed: float
    """The same, limited to between 0 and the largest share of all work that may be dropped."""
    saved: float
    """What the current shares save."""
    band: float


class Controller:
    """Decides when to shed and how much. Pure: all its state is in the memory that it returns."""

    def __init__(
        self,
        settings: ShedSettings,
        topology: Topology,
        strategy: Strategy | None = None,
        half_life: float = HALF_LIFE,
        sparing: bool = False,
    ) -> None:
        """Set up for a network. Raises a PolicyError if the settings name outputs or a strategy that do not exist.

        `half_life` is that of the loads in observations, in seconds. If `sparing`, tuples are dropped only if a
        forecast says that it increases the outputs' worth; otherwise whenever the load exceeds the usable capacity.
        """
        self.settings = settings
        self.limits = settings.limits(topology.outputs, topology.qos)
        self._topology = topology
        self._strategy = settings.make_strategy() if strategy is None else strategy
        self.by_value = settings.by_value and getattr(self._strategy, "by_value", True)
        """Whether outputs with a value graph lose their least valuable tuples first."""
        self._half_life = half_life
        self._zones = good_zones(topology.qos)
        # Without latency graphs the cost of waiting is unknown: then queues are kept short.
        self._sparing = sparing and any(graphs.latency is not None for graphs in topology.qos)
        # With a drain time below two intervals the control loop would oscillate.
        self._drain = max(self._drain_time(), 2 * settings.interval.seconds)
        # Observations within a half-life are correlated: a decrease of the load must last for `hold` half-lives.
        self._patience = max(settings.hold, math.ceil(settings.hold * half_life / settings.interval.seconds))
        # Seconds of waiting that do no harm. Half of the good zone is left for processing.
        self._allowance = min(0.5 * float(self._zones.min(initial=np.inf)), 0.25 * self._drain)

    def _drain_time(self) -> float:
        """Return the seconds in which a backlog should be worked off; more if good zones are long, to drop less."""
        if self.settings.drain is not None:
            return self.settings.drain.seconds
        return min(max(_DRAIN, 0.5 * float(self._zones.min(initial=np.inf))), _LONGEST)

    def start(self) -> ControllerMemory:
        """Return the initial memory: nothing is dropped."""
        count = len(self._topology.outputs)
        return ControllerMemory(kept=np.ones(count), ages=np.full(count, np.inf))

    def decide(
        self,
        observation: Observation,
        memory: ControllerMemory,
        most: Sequence[float] | None = None,
        forced: bool = False,
    ) -> tuple[Decision, ControllerMemory]:
        """Return what to drop from now on, and the memory. Called about once per interval of the settings.

        `most` (by output: the largest share that may be dropped) replaces the settings' limits if given: an adaptive
        layer may select the outputs to drop from. A change of it takes effect at once. If `forced`, an adaptive layer
        has stricter goals than the graphs, and the forecast is not asked whether dropping pays.
        """
        limits = self.limits if most is None else tuple(map(float, most))
        if len(memory.keep) != len(observation.sites):
            memory = replace(memory, keep=np.ones(len(observation.sites)), excess=0.0)
        memory = self._follow(observation, memory)
        case = self._judge(observation, memory)
        memory = self._count(case, observation, memory)
        outlook = None if forced or not self._sparing else self._outlook(case, observation, memory)
        if self._sparing:
            memory = self._remember(case, observation, memory)
        excess = self._excess(case, observation, memory, limits)
        if outlook is not None and memory.excess > 0:
            # While the load exceeds the capacity, shedding would only have to start again.
            useful = case.load > case.can_do or outlook.gain(memory.keep) > 0
            memory = replace(memory, idle=0 if useful else memory.idle + 1)
            if memory.idle >= self.settings.hold:
                excess = 0.0
        if excess is None:
            held = ""
            if memory.excess > 0:
                held = self._held(memory.keep, memory, None)
            elif self._sparing and memory.over >= self.settings.hold:
                held = UNSHOWN
            return Decision(memory.keep, memory.excess, False, memory.reason, held), memory
        # While the load exceeds the capacity, the current shares may stay if no others pay and limits still allow them.
        stays = case.load > case.can_do and case.saved <= excess + case.band and self._allowed(memory, limits)
        return self._enact(excess, case, observation, replace(memory, limits=limits), outlook, stays)

    def _allowed(self, memory: ControllerMemory, limits: tuple[float, ...]) -> bool:
        """Return whether the limits have not changed since the current shares, and the total limit is kept."""
        return limits == memory.limits and memory.part <= self.settings.most_in_all + 0.5 * self.settings.band

    def _outlook(self, case: _Case, observation: Observation, memory: ControllerMemory) -> Outlook:
        """Return the forecast of whether dropping pays."""
        dropped = 0.0
        if len(observation.waiting) == len(memory.keep):
            dropped = work_saved(observation.waiting * observation.costs, memory.keep, observation.nested)
        # Trains come and go: only what waited at both observations is a queue.
        ages = np.minimum(observation.oldest, memory.ages)
        return Outlook(
            observation,
            case.can_do,
            observation.backlog + dropped,
            ages,
            (observation.now - memory.began) / SECOND,
            memory.kept,
            _AHEAD + _BELIEVED * (observation.now - memory.since) / SECOND,
        )

    def _remember(self, case: _Case, observation: Observation, memory: ControllerMemory) -> ControllerMemory:
        """Record in the memory the kept shares, the ages of waiting tuples, and since when there is an overload."""
        now, interval = observation.now, self.settings.interval.seconds
        past = min((now - memory.began) / SECOND, PAST)
        part = min(interval / max(past, interval), 1.0)
        kept = memory.kept + (kept_of(observation, memory.keep) - memory.kept) * part
        since = memory.since if case.surplus > 0 or memory.excess > 0 else now
        return replace(memory, kept=kept, ages=observation.oldest, since=since)

    def _follow(self, observation: Observation, memory: ControllerMemory) -> ControllerMemory:
        """Record the capacity and the flow of work in the memory."""
        if memory.looked is None:
            begun = observation.now - self.settings.interval.nanoseconds
            memory = replace(memory, began=begun, since=begun)
        passed = 0.0 if memory.looked is None else (observation.now - memory.looked) / SECOND
        read, capacity, proven = observation.capacity, memory.capacity, memory.proven
        if math.isfinite(read) and read > 0:
            if observation.busy > _AT_WORK:
                capacity = mixed(capacity, read, left_after(passed, _CAPACITY)) if proven else read
                proven = True
            elif not proven:
                capacity = read
        growth, trust = memory.growth, memory.trust
        if passed > 0:
            # Both at current costs: a higher estimate of a box's cost is not growth of a queue.
            before = memory.backlog if observation.before is None else observation.before
            grown = (observation.backlog - before) / passed
            # New shares change the work in a backlog; and one that shrinks faster than it can be processed was dropped.
            if not memory.fresh and grown > -(1 + _SURPRISE) * _BOUNDS[1] * capacity:
                growth = mixed(growth, grown, left_after(passed, self._half_life))
            trail = (*memory.trail, (memory.trail[-1] if memory.trail else 0.0) + observation.backlog - before)
            memory = replace(memory, trail=trail[-2 * _GROWS :])
            if observation.busy > _AWAKE and capacity > 0:
                shown = (observation.kept - growth) / (observation.busy * capacity)
                surprise = min(max(shown - trust, -_SURPRISE), _SURPRISE)
                trust = mixed(trust, trust + surprise, left_after(passed, _TRUST))
                trust = min(max(trust, _BOUNDS[0]), _BOUNDS[1])
            else:
                trust = mixed(trust, 1.0, left_after(passed, _FORGET))
        return replace(
            memory,
            looked=observation.now,
            capacity=capacity,
            proven=proven,
            trust=trust,
            backlog=observation.backlog,
            growth=growth,
            fresh=False,
        )

    def _judge(self, observation: Observation, memory: ControllerMemory) -> _Case:
        """Return how much work should be saved and how much is."""
        load, can_do = max(observation.load, 0.0), memory.can_do
        fits = can_do * self.settings.headroom
        surplus = max(observation.backlog - self._allowance * can_do, 0.0)
        wanted = load - fits + min(surplus / self._drain, fits * (1 - _LEAST))
        if can_do <= 0:  # not known yet
            wanted = 0.0
        return _Case(
            load=load,
            can_do=can_do,
            fits=fits,
            surplus=surplus,
            wanted=wanted,
            needed=min(max(wanted, 0.0), self.settings.most_in_all * load),
            saved=_saved(observation, memory.keep),
            band=max(self.settings.band * max(can_do, load), _CHANCE * observation.noise),
        )

    def _count(self, case: _Case, observation: Observation, memory: ControllerMemory) -> ControllerMemory:
        """Update the counters of observations in a row with a deviation, by its kind."""
        # Every observation counts the same, however late it is: this is about noise, not about time.
        passed = self.settings.interval.seconds
        error = case.needed - case.saved
        slow = mixed(memory.error, error, left_after(passed, _SLOW))
        active = memory.excess > 0
        # The mean is for leaving shedding with care; before it starts, the value itself counts.
        wanted = mixed(memory.wanted, case.wanted, left_after(passed, _SLOW)) if active else case.wanted
        over = case.load - case.fits > case.band and (observation.busy > _AT_WORK or case.surplus > 0)
        off = 0
        if abs(error) > _SURE * case.band:
            off = max(memory.off, 0) + 1 if error > 0 else min(memory.off, 0) - 1
        stuck = self._is_stuck(case, observation, memory)
        return replace(
            memory,
            error=slow,
            wanted=wanted,
            part=mixed(memory.part, case.saved / case.load if case.load > 0 else 0.0, left_after(passed, _SLOW)),
            over=memory.over + 1 if over else 0,
            off=off,
            drift=memory.drift + 1 if abs(slow) > case.band else 0,
            spare=memory.spare + 1 if active and case.wanted < -case.band else 0,
            calm=memory.calm + 1 if active and wanted <= 0 else 0,
            stuck=memory.stuck + 1 if stuck else 0,
            missed=memory.missed + 1 if stuck else 0,
        )

    def _is_stuck(self, case: _Case, observation: Observation, memory: ControllerMemory) -> bool:
        """Return whether the surplus, or all of the backlog if results are late, takes over twice the drain time."""
        todo = observation.backlog if self._is_late(observation) else case.surplus
        return todo > 0 and -memory.growth * 2 * self._drain < todo

    def _excess(
        self, case: _Case, observation: Observation, memory: ControllerMemory, limits: tuple[float, ...]
    ) -> float | None:
        """Return the work to be saved from now on, or None if shares stay as they are."""
        hold, cap = self.settings.hold, self.settings.most_in_all * case.load
        if memory.excess <= 0:
            sure = memory.over >= hold or (memory.over > 0 and case.surplus > 0)
            late = case.surplus > 0 and self._is_late(observation)
            if not observation.pressed or (self._sparing and not self._shows(case, observation, memory)):
                return None
            return case.needed if case.needed > 0 and (sure or late) else None
        if memory.spare >= self._patience or memory.calm >= 2 * self._patience:
            return 0.0
        if memory.off >= hold or -memory.off >= self._patience:
            return case.needed
        more = min(max(case.needed, case.saved + case.band), cap)
        if memory.stuck >= 2 * hold and more > case.saved + 0.5 * case.band:
            return more
        if memory.drift >= hold:
            return min(max(case.saved + memory.error, 0.0), cap)
        # Limits take effect at once: those of outputs when they change, that of all work as the load changes.
        if not self._allowed(memory, limits):
            return min(case.needed, cap)
        return None

    def _shows(self, case: _Case, observation: Observation, memory: ControllerMemory) -> bool:
        """Return whether the overload is visible, and not only predicted from measured costs.

        Results are late or soon will be while the engine is never idle, more arrives than the measured capacity, and
        queues have grown.
        """
        near = bool((observation.oldest > 0.5 * self._zones).any()) and observation.busy > BUSY
        rise = case.load - memory.capacity
        if not (near or self._is_late(observation)) or rise <= case.band:
            return False
        looks = _GROWS // 2 if case.load > _CLEAR * memory.capacity else _GROWS
        if len(memory.trail) < 2 * looks:
            return False
        grown = min(memory.trail[-looks:]) - min(memory.trail[-2 * looks : -looks])
        return grown > _AGREES * rise * looks * self.settings.interval.seconds

    def _is_late(self, observation: Observation) -> bool:
        """Return whether outputs are outside their good zone while the engine is never idle."""
        return observation.busy > BUSY and bool((outside_good_zone(observation, self._zones) > LATE).any())

    def _enact(
        self,
        excess: float,
        case: _Case,
        observation: Observation,
        memory: ControllerMemory,
        outlook: Outlook | None,
        stays: bool,
    ) -> tuple[Decision, ControllerMemory]:
        """Get shares from the strategy and reset the counters; with `stays`, keep the current ones if none pay."""
        keep = np.ones(len(observation.sites))
        if excess > 0 and outlook is None:
            keep = self._shares(excess, case, observation, memory)
        elif excess > 0 and outlook is not None:
            tried = [self._shares(part * excess, case, observation, memory) for part in _LESS]
            gains = [outlook.gain(one) for one in tried]
            best = int(np.argmax(gains))
            if gains[best] > 0:
                keep, excess = tried[best], _LESS[best] * excess
            elif memory.excess <= 0 or stays:
                held = "" if memory.excess > 0 else self._held(tried[0], memory, outlook)
                return Decision(memory.keep, memory.excess, False, memory.reason, held), memory
            else:
                excess = 0.0
        # Nearly equal shares are not changed, but an excess of 0 ends all dropping.
        changed = bool((np.abs(keep - memory.keep) > (_SAME if excess > 0 else 0.0)).any())
        if not changed:
            keep = memory.keep
        saved = _saved(observation, keep)
        reason = memory.reason
        if changed or memory.excess <= 0 or excess <= 0:
            thinned = _saved(self._with_backlog(case, observation, memory.keep), keep)
            reason = self._reason(excess, thinned, case, observation)
        keep.flags.writeable = False
        memory = replace(
            memory,
            keep=keep,
            excess=excess,
            reason=reason,
            error=0.0,
            part=saved / case.load if case.load > 0 else 0.0,
            growth=memory.growth - (saved - case.saved),
            fresh=changed,
            over=0,
            off=0,
            drift=0,
            stuck=0,
            idle=0,
        )
        held = self._held(keep, memory, None) if excess > 0 else ""
        return Decision(keep, excess, changed, reason, held), memory

    def _held(self, keep: Floats, memory: ControllerMemory, outlook: Outlook | None) -> str:
        """Return why the strategy's shares are not used, or why it drops nothing."""
        if not (keep < 1.0).any():
            return nothing_allowed(self.settings.strategy, self._topology.outputs, memory.limits)
        return "" if outlook is None else does_not_pay(outlook.worth(keep), outlook.worth(np.ones(len(keep))))

    def _shares(self, excess: float, case: _Case, observation: Observation, memory: ControllerMemory) -> Floats:
        """Return by site the share to keep.

        A backlog is reduced by dropping at sites that must drop because of the load anyway. Other sites drop for it
        only if latency goals are missed for long: a backlog is temporary, dropped tuples are lost for good.
        """
        asked = self._with_backlog(case, observation, memory.keep)
        keep = np.clip(self._strategy.shares(asked, excess, memory.limits), 0.0, 1.0)
        lasting = max(case.load - case.fits, case.band)
        if case.surplus > 0 and lasting < excess and memory.missed < _LONG_STUCK * self.settings.hold:
            steady = self._strategy.shares(observation, lasting, memory.limits)
            keep = np.where(steady < 1.0, keep, 1.0)
        return keep

    def _with_backlog(self, case: _Case, observation: Observation, keep: Floats) -> Demand:
        """Return the demand with the tuples waiting at the sites counted as if they arrived within the drain time.

        A drop box thins out the tuples waiting before it, too. Without this, outputs that tolerate no loss would pay
        for a backlog that disappears once tolerant outputs give way.
        """
        if len(observation.waiting) != len(keep) or case.surplus <= 0 or observation.backlog <= 0:
            return observation
        counted = min(case.surplus / self._drain, case.fits * (1 - _LEAST)) / observation.backlog
        return replace(observation, rates=observation.rates + observation.waiting * keep * counted)

    def _reason(self, excess: float, saved: float, case: _Case, observation: Observation) -> str:
        room = f"{case.can_do:.2f} × {self.settings.headroom:g} can be done"
        if excess <= 0:
            return f"needs {case.load:.2f} s/s of work, {room}: nothing is dropped"
        text = f"needs {case.load:.2f} s/s of work, {room}"
        if case.surplus > 0:
            text += f", {observation.backlog:.2g} s of work wait"
        text += f": {saved:.2f} s/s are dropped"
        if saved < excess - case.band:
            text += f", {excess:.2f} should be, but no more is allowed"
        elif case.wanted > excess + case.band and self.settings.most_in_all < 1:
            text += f", no more than {self.settings.most_in_all:.0%} of all"
        culprit = find_culprit(replace(observation, capacity=case.can_do), self._topology, self.settings.headroom)
        return f"{text}; because of {culprit}" if culprit else text


def _saved(demand: Demand, keep: Floats) -> float:
    return work_saved(demand.rates * demand.costs, keep, demand.nested)
