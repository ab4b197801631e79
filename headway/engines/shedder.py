"""The load shedder at run time: inserts, adjusts and removes drop boxes, and counts what they drop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headway.columns import Floats
from headway.engines.monitor import Sheddable
from headway.engines.reading import Reading
from headway.engines.traces import ChangeLog
from headway.network.qos import Graph
from headway.shedding.controller import Controller
from headway.shedding.diagnosis import Observation
from headway.shedding.intervals import Histogram
from headway.shedding.losses import LINEAR
from headway.shedding.semantic import SemanticPlanner
from headway.shedding.settings import ShedSettings
from headway.shedding.sites import Entry
from headway.sieves import Sieve


class Shedder:
    """Carries out the controller's decisions. Used by the scheduler thread."""

    def __init__(
        self,
        settings: ShedSettings | None,
        reading: Reading,
        drops: Sheddable,
        log: ChangeLog,
        tables: Mapping[str, Any] | None = None,
        before: Shedder | None = None,
    ) -> None:
        """Start without drop boxes; without settings nothing is dropped until an adaptive layer asks for it.

        What the shedder `before` a seam has dropped still counts.
        """
        self._reading = reading
        self._drops = drops
        self._log = log
        self._tables = tables
        topology = reading.topology
        self.settings = settings or ShedSettings()
        nothing = (0.0,) * len(topology.outputs)
        self._limits = nothing if settings is None else self.settings.limits(topology.outputs, topology.qos)
        self._controller = Controller(self.settings, topology, sparing=drops.measures)
        self._memory = self._controller.start()
        self._may = settings is not None
        self._off: bool = before is not None and before._off  # by command
        self._past: dict[str, tuple[Counter[str], float]] = {} if before is None else before._so_far()
        """By output: what was dropped before the latest seam, and the share that was kept."""
        self._total: Counter[str] = Counter() if before is None else before._in_all()
        self.keep: Floats = np.ones(len(drops.sites))
        """The share now kept, by site."""
        self._held: tuple[int, str] = 0, ""  # looks at which it should have dropped but did not, and the latest reason
        self._histograms: dict[int, Histogram] = {}
        self._planners: dict[Entry, SemanticPlanner | None] = {}
        self._how: dict[int, str] = {}
        self._by_value: set[int] = set()  # sites that currently drop by value
        if self._controller.by_value and settings is not None:
            for output, qos in enumerate(topology.qos):
                if qos.value is not None:
                    histogram = self._histograms[output] = Histogram()
                    reading.deliveries[output].watch = histogram.add

    @property
    def active(self) -> bool:
        """Whether anything is being dropped."""
        return bool((self.keep < 1.0).any())

    def look(self, observation: Observation, forced: frozenset[int]) -> None:
        """Decide what to drop from now on; outputs in `forced` may lose tuples even if the settings do not allow it."""
        if self._off or not (self._may or forced or self.active) or not self._reading.ingest.pressing:
            return
        limits = [
            max(most, self.settings.most if output in forced else 0.0) for output, most in enumerate(self._limits)
        ]
        observation = replace(observation, losses=self._losses())
        decision, self._memory = self._controller.decide(observation, self._memory, limits, bool(forced))
        if decision.held:
            self._held = self._held[0] + 1, decision.held
        if not decision.changed:
            self._refresh()
            return
        for site in np.flatnonzero(decision.keep != self.keep).tolist():
            self._adjust(site, float(decision.keep[site]), decision.reason, observation.now)
        self.keep = decision.keep.copy()

    def switch(self, active: bool, now: int) -> None:
        """Allow load shedding, or remove all drop boxes and insert none."""
        self._off = not active
        if self._off:
            for site in np.flatnonzero(self.keep < 1.0).tolist():
                self._adjust(site, 1.0, "load shedding is off", now)
            self.keep = np.ones(len(self.keep))
            self._memory = self._controller.start()

    def _losses(self) -> dict[int, Graph]:
        """Return the loss graphs that follow from value graphs, for outputs without a loss graph of their own."""
        losses: dict[int, Graph] = {}
        if not self._histograms:  # in a large network without value graphs, skip the loop
            return losses
        for at, site in enumerate(self._drops.sites):
            output, entry = site.outputs[0], site.entries[0]
            planner = self._planner(at, entry)
            if planner is not None and self._reading.topology.qos[output].loss is None:
                graph = planner.loss_graph(self._drops.sample(entry), self._histograms[output])
                if graph is not None:
                    losses[output] = graph
        return losses

    def _adjust(self, site: int, keep: float, reason: str, now: int) -> None:
        """Insert, adjust or remove the drop boxes of a site, and log it."""
        place, before = self._drops.sites[site], float(self.keep[site])
        self._put(site, keep)
        how = self._how.get(site, "at random")
        if keep >= 1.0:
            what = "removed"
        elif before >= 1.0:
            what = f"inserted: keeps {keep:.1%}, {how}"
        else:
            what = f"keeps {keep:.1%} instead of {before:.1%}, {how}"
        self._log.add(now, "shed", place.name, what, reason)

    def _put(self, site: int, keep: float) -> None:
        place = self._drops.sites[site]
        sieves = [None if keep >= 1.0 else self._sieve(site, entry, keep) for entry in place.entries]
        for entry, sieve in zip(place.entries, sieves, strict=True):
            self._drops.put(site, entry, sieve)
        if any(sieve is not None and sieve.field is not None for sieve in sieves):
            self._by_value.add(site)
        else:
            self._by_value.discard(site)
        for output in place.outputs:
            if output in self._histograms:  # values seen behind a choice by value would confirm the choice
                chosen = [one for one in self._by_value if output in self._drops.sites[one].outputs]
                self._histograms[output].paused = bool(chosen)

    def _sieve(self, site: int, entry: Entry, keep: float) -> Sieve:
        planner = self._planner(site, entry)
        if planner is None:
            return Sieve(keep, site)
        sample = self._drops.sample(entry)
        output = self._drops.sites[site].outputs[0]
        sieve = planner.sieve(sample, self._histograms[output], keep, site)
        self._how[site] = planner.explain(sieve)
        return sieve

    def _planner(self, site: int, entry: Entry) -> SemanticPlanner | None:
        """Return the planner for dropping by value at an entry; None if its outputs have no value graph."""
        outputs = self._drops.sites[site].outputs
        if entry not in self._planners:
            single = len(outputs) == 1 and outputs[0] in self._histograms
            way = self._drops.way(entry)
            planner = SemanticPlanner(self._reading.checked, outputs[0], way, self._tables) if single else None
            self._planners[entry] = planner if planner is not None and planner.by_value else None
        return self._planners[entry]

    def _refresh(self) -> None:
        """Adapt sieves that drop by value to the values that arrive now."""
        for site in np.flatnonzero(self.keep < 1.0).tolist():
            entries = self._drops.sites[site].entries
            if any(self._planner(site, entry) is not None for entry in entries):
                self._put(site, float(self.keep[site]))

    # What was dropped

    def _dropped(self) -> list[Counter[str]]:
        """Return what was dropped by site and reason."""
        return [
            sum((self._drops.drop(entry).dropped for entry in site.entries), Counter[str]())
            for site in self._drops.sites
        ]

    def lost(self) -> list[int]:
        """Return by output the tuples dropped on the way to it."""
        lost = [self._past[name][0].total() if name in self._past else 0 for name in self._reading.topology.outputs]
        for site, counts in zip(self._drops.sites, self._dropped(), strict=True):
            for output in site.outputs if counts else ():
                lost[output] += counts.total()
        return lost

    def outputs(self, delivered: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the summary's entry for each output, including its losses."""
        shed, kept = self._losses_so_far()
        topology = self._reading.topology
        told = {}
        for at, (name, summary) in enumerate(delivered.items()):
            share = float(kept[at])
            loss = (topology.qos[at].loss or LINEAR).value(100 * share)
            told[name] = {
                **summary,
                "shed": shed[at].total(),
                "shed_by": dict(shed[at]),
                "kept": share,
                "loss_utility": loss,
                "worth": _worth(summary["utility"], loss, shed[at].total()),
            }
        return told

    def _losses_so_far(self) -> tuple[list[Counter[str]], Floats]:
        """Return by output what was dropped by reason, and the share that was kept."""
        topology, dropped = self._reading.topology, self._dropped()
        before = [self._past.get(name, (Counter[str](), 1.0)) for name in topology.outputs]
        shed = [Counter(counts) for counts, _ in before]
        kept: Floats = np.array([share for _, share in before], np.float64)
        for site, counts in zip(self._drops.sites, dropped, strict=True):
            lost = counts.total()
            if not lost:
                continue
            seen = sum(self._drops.seen(entry) for entry in site.entries)
            for output in site.outputs:
                shed[output] += counts
                kept[output] *= 1.0 - lost / max(seen, lost)
        return shed, kept

    def _so_far(self) -> dict[str, tuple[Counter[str], float]]:
        """Return the losses by the names of outputs that have any."""
        shed, kept = self._losses_so_far()
        rows = zip(self._reading.topology.outputs, shed, kept.tolist(), strict=True)
        return {name: (counts, share) for name, counts, share in rows if counts}

    def _in_all(self) -> Counter[str]:
        return sum(self._dropped(), Counter(self._total))

    def summary(self) -> dict[str, Any]:
        """Return the summary of load shedding."""
        total = self._in_all()
        return {
            "strategy": self.settings.strategy if self._may else None,
            "dropped": dict(total),
            "active": {
                site.name: float(keep) for site, keep in zip(self._drops.sites, self.keep, strict=True) if keep < 1.0
            },
            "count": self._log.counts["shed"],
            "changes": self._log.summary("shed"),
            "held": {"looks": self._held[0], "reason": self._held[1]} if self._held[0] else None,
        }


def _worth(utility: float | None, loss: float, shed: int) -> float | None:
    """Return an output's worth: 0 if all of it was lost, None if there was never anything to deliver."""
    if utility is None:
        return 0.0 if shed else None
    return utility * loss
