"""The controller: when to shed load, how much of it, and when to stop.

Aurora (sections 4.4 and 4.5) says that load is shed when there is too much, and repeatedly until latency goals are met.
Here that is a control loop, asked about every half second with readings that are noisy and late:

    needed = load + (backlog - allowance) / drain - capacity × headroom

is the work per second to be saved: what arrives beyond what fits, and what works off in `drain` seconds a backlog that
is longer than good zones allow. A strategy turns it into shares to keep.

- *Hysteresis.* Shedding starts above a dead band, not at its lower end; while it is on, shares move only if what they
  save is off by more than the band, for several looks in a row; it stops when nothing needs to be saved any more.
- *Noise.* Small errors count as a slow mean; only large ones count as they are read.
- *What can be done* is not only what is measured. If queues grow although the cost model says that the work fits, less
  is done than it says: (kept - growth of the backlog) / busy time corrects the capacity. So latency goals are met with
  a wrong cost model, too. As this looks at what was predicted and not at how far the goal is, it cannot wind up while
  nothing more may be dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.catalog import Floats, Topology
from headway.clock import SECOND
from headway.fading import left_after, mixed
from headway.shedding.decisions import UNSHOWN, ControllerMemory, Decision, does_not_pay, nothing_allowed
from headway.shedding.diagnosis import BUSY, LATE, Observation, find_culprit, good_zones, outside_good_zone
from headway.shedding.forecasts import PAST, Outlook, kept_of
from headway.shedding.settings import ShedSettings
from headway.shedding.strategies import Demand, Strategy, work_saved

HALF_LIFE = 1.0
"""Seconds after which what was read counts half in the rates and loads of observations, where nothing is said."""
_AT_WORK = 0.8
"""An engine that is busy for less of the time does not show what it can do."""
_LEAST = 0.4
"""The part of what fits that new tuples may always have, however long the backlog: they are wanted, too."""
_AWAKE = 0.6
"""One that is busy for less of the time does not even show how work flows."""
_CHANCE = 1.5
"""Standard deviations of the reading that are within the dead band: few tuples that make much work come unevenly."""
_SURE = 3.0
"""Dead bands from which on an error is no noise."""
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
"""The most by which one look may contradict the correction: queues jump for other reasons, too."""
_DRAIN, _LONGEST = 2.0, 10.0
"""Seconds in which a backlog should be worked off, at least and at most, where nothing is said."""
_LONG_STUCK = 4
"""Times `hold` that goals are not met, until those give way for it who need not for what arrives."""
_AHEAD, _BELIEVED = 1.0, 0.1
"""How far is looked ahead: so many seconds, and this part of the time that there has been too much to do."""
_LESS = (1.0, 0.75, 0.5, 0.25)
"""Parts of what should be saved that are compared: less may be worth more."""
_CLEAR = 1.3
"""How many times what can be done has to arrive so that half as many looks show that queues grow."""
_GROWS = 4
"""Looks whose shortest queue is compared with that of as many looks before: trains come and go."""
_AGREES = 0.5
"""The part of the growth that measured costs promise by which queues have to grow."""
_SAME = 1e-3
"""Shares that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What one look comes to; in seconds of work per second where nothing else is said."""

    load: float
    can_do: float
    fits: float
    surplus: float
    """Seconds of work that wait beyond what good zones allow."""
    wanted: float
    """What should be saved; below 0 where there is room to spare."""
    needed: float
    """The same between nothing and the largest share of all work that may be dropped."""
    saved: float
    """What the present shares save."""
    band: float


class Controller:
    """Decides when to shed and how much. Pure: all that it keeps is in the memory that it returns."""

    def __init__(
        self,
        settings: ShedSettings,
        topology: Topology,
        strategy: Strategy | None = None,
        half_life: float = HALF_LIFE,
        sparing: bool = False,
    ) -> None:
        """Control a network; raises a PolicyError where the settings name outputs or a strategy that do not exist.

        `half_life` is that of the loads in observations, in seconds. If `sparing`, nothing is dropped unless a
        forecast says that outputs are worth more so; otherwise whenever there is more to do than fits.
        """
        self.settings = settings
        self.limits = settings.limits(topology.outputs, topology.qos)
        self._topology = topology
        self._strategy = settings.make_strategy() if strategy is None else strategy
        self.by_value = settings.by_value and getattr(self._strategy, "by_value", True)
        """Whether outputs with a value graph lose their least valuable tuples first."""
        self._half_life = half_life
        self._zones = good_zones(topology.qos)
        # Without latency graphs nobody says what waiting costs: then queues are kept short.
        self._sparing = sparing and any(graphs.latency is not None for graphs in topology.qos)
        # A backlog that is to go before the next look but one would be chased from both sides.
        self._drain = max(self._drain_time(), 2 * settings.interval.seconds)
        # What is read within a half-life is much the same: to be sure that load has gone takes as many of them.
        self._patience = max(settings.hold, math.ceil(settings.hold * half_life / settings.interval.seconds))
        # Seconds of waiting that are nobody's trouble. Half of the good zone is left to the boxes themselves.
        self._allowance = min(0.5 * float(self._zones.min(initial=np.inf)), 0.25 * self._drain)

    def _drain_time(self) -> float:
        """Return the seconds in which a backlog should go; who may be later anyhow need not drop more for it."""
        if self.settings.drain is not None:
            return self.settings.drain.seconds
        return min(max(_DRAIN, 0.5 * float(self._zones.min(initial=np.inf))), _LONGEST)

    def start(self) -> ControllerMemory:
        """Return the memory to begin with: nothing is dropped."""
        return ControllerMemory()

    def decide(
        self,
        observation: Observation,
        memory: ControllerMemory,
        most: Sequence[float] | None = None,
        forced: bool = False,
    ) -> tuple[Decision, ControllerMemory]:
        """Return what to drop from now on, and the memory. To be called about once in the settings' interval.

        `most`, by output the largest share that may be dropped, stands in for the settings' own limits, if given: an
        adaptive layer may say whose tuples are to be dropped. Shares follow at once when it changes. If `forced`,
        somebody has stricter goals than the graphs say, and nobody asks whether dropping pays.
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
            # While more comes than can be done, it would only have to begin again.
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
        # While more comes than can be done, shares may stay that no others are better than, if they are still allowed.
        stays = case.load > case.can_do and case.saved <= excess + case.band and self._allowed(memory, limits)
        return self._enact(excess, case, observation, replace(memory, limits=limits), outlook, stays)

    def _allowed(self, memory: ControllerMemory, limits: tuple[float, ...]) -> bool:
        """Return whether limits are those of the present shares, and no more than allowed is dropped in all."""
        return limits == memory.limits and memory.part <= self.settings.most_in_all + 0.5 * self.settings.band

    def _outlook(self, case: _Case, observation: Observation, memory: ControllerMemory) -> Outlook:
        """Return what tells whether dropping pays."""
        count = len(self._topology.outputs)
        dropped = 0.0
        if len(observation.waiting) == len(memory.keep):
            dropped = work_saved(observation.waiting * observation.costs, memory.keep, observation.nested)
        # Trains come and go: what waited at both looks is a queue.
        ages = np.minimum(observation.oldest, memory.ages) if len(memory.ages) == count else observation.oldest
        return Outlook(
            observation,
            case.can_do,
            observation.backlog + dropped,
            ages,
            (observation.now - memory.began) / SECOND,
            memory.kept if len(memory.kept) == count else np.ones(count),
            _AHEAD + _BELIEVED * (observation.now - memory.since) / SECOND,
        )

    def _remember(self, case: _Case, observation: Observation, memory: ControllerMemory) -> ControllerMemory:
        """Take into the memory what was kept, what waits, and since when there is too much to do."""
        count, now = len(self._topology.outputs), observation.now
        kept = memory.kept if len(memory.kept) == count else np.ones(count)
        past = min((now - memory.began) / SECOND, PAST)
        part = min(self.settings.interval.seconds / max(past, self.settings.interval.seconds), 1.0)
        kept = kept + (kept_of(observation, memory.keep) - kept) * part
        since = memory.since if case.surplus > 0 or memory.excess > 0 else now
        return replace(memory, kept=kept, ages=observation.oldest, since=since)

    def _follow(self, observation: Observation, memory: ControllerMemory) -> ControllerMemory:
        """Take the capacity and the flow of work into the memory."""
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
            # At the costs of now: a box that is found to cost more than was thought makes no queue grow.
            before = memory.backlog if observation.before is None else observation.before
            grown = (observation.backlog - before) / passed
            # With other shares, what waits means other work; and what goes faster than anybody can work was dropped.
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
        """Return what should be saved and what is."""
        load, can_do = max(observation.load, 0.0), memory.can_do
        fits = can_do * self.settings.headroom
        surplus = max(observation.backlog - self._allowance * can_do, 0.0)
        wanted = load - fits + min(surplus / self._drain, fits * (1 - _LEAST))
        if can_do <= 0:  # nobody knows yet
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
        """Count for how many looks in a row the load has been off, and how."""
        # Every look counts the same, however late it comes: this is about noise, not about time.
        passed = self.settings.interval.seconds
        error = case.needed - case.saved
        slow = mixed(memory.error, error, left_after(passed, _SLOW))
        active = memory.excess > 0
        # Before anything is dropped, there is no mean to be careful about.
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
        """Return whether latency goals are not met, and the backlog needs more than twice the time that it may."""
        todo = observation.backlog if self._is_late(observation) else case.surplus
        return todo > 0 and -memory.growth * 2 * self._drain < todo

    def _excess(
        self, case: _Case, observation: Observation, memory: ControllerMemory, limits: tuple[float, ...]
    ) -> float | None:
        """Return what should be saved from now on, or None if shares stay as they are."""
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
        # Limits hold at once: those of an output are shares, that of all work follows what arrives.
        if not self._allowed(memory, limits):
            return min(case.needed, cap)
        return None

    def _shows(self, case: _Case, observation: Observation, memory: ControllerMemory) -> bool:
        """Return whether there is too much to do by what has happened, not only by what measured costs promise.

        Results are late or soon will be, nobody is idle, more arrives than was done lately, and queues have grown.
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
        """Return whether outputs are outside of their good zone because there is no time to spare."""
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
        """Ask the strategy for shares, and begin to count anew; if none of them pays, the present ones may stay."""
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
        # What is nearly the same stays, but nothing means nothing.
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
        """Return why the shares that a strategy wants are not taken, or why it wants none."""
        if not (keep < 1.0).any():
            return nothing_allowed(self.settings.strategy, self._topology.outputs, memory.limits)
        return "" if outlook is None else does_not_pay(outlook.worth(keep), outlook.worth(np.ones(len(keep))))

    def _shares(self, excess: float, case: _Case, observation: Observation, memory: ControllerMemory) -> Floats:
        """Return by site the share to keep.

        A backlog is worked off by those who have to give way for what arrives anyhow. Others do so only if latency
        goals are not met in time otherwise: a backlog goes, what is dropped is gone for good.
        """
        asked = self._with_backlog(case, observation, memory.keep)
        keep = np.clip(self._strategy.shares(asked, excess, memory.limits), 0.0, 1.0)
        lasting = max(case.load - case.fits, case.band)
        if case.surplus > 0 and lasting < excess and memory.missed < _LONG_STUCK * self.settings.hold:
            steady = self._strategy.shares(observation, lasting, memory.limits)
            keep = np.where(steady < 1.0, keep, 1.0)
        return keep

    def _with_backlog(self, case: _Case, observation: Observation, keep: Floats) -> Demand:
        """Return the demand with what waits at the sites as if it came within the drain time.

        A drop box thins out what waits before it, too. Without that, a backlog that goes by itself as soon as tolerant
        outputs give way would be made up for by those that tolerate nothing.
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
