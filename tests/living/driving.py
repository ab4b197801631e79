"""Drive a network through random pushes, changes and pauses, and hold its results against the reference."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import headway as hw
from headway.errors import RunError
from headway.running import Attached, Change, Running
from tests.living.following import Record, Seamed, expected, recording
from tests.living.plans import Editor, Part, Plan, first_plan
from tests.reference.compare import assert_same, in_any_order
from tests.reference.kinds import BIGINT
from tests.reference.tuples import Row
from tests.streams import COMMON, POLICIES, RANDOM_POLICY, TRAINS, _rows, _seeded

MOST = 400
"""Rows that a source may get."""
PATIENCE = 30.0
"""Seconds that a command may take: far more than it needs."""


class EndedError(Exception):
    """The run had ended before a change."""


@dataclass(frozen=True)
class Way:
    """How to run; nothing of it may change results."""

    policy: str
    train: int
    workers: int
    memory: int

    def options(self) -> dict[str, Any]:
        """Return it as options of a run."""
        return {"policy": self.policy, "train": self.train, "workers": self.workers, "memory": self.memory}


def any_way(chance: random.Random) -> Way:
    """Return a random way."""
    policy = (
        f"random:{chance.randrange(10_000)}" if RANDOM_POLICY and chance.random() < 0.4 else chance.choice(POLICIES)
    )
    return Way(policy, chance.choice(TRAINS), chance.choice((1, 1, 2)), chance.choice((500, 5_000, 1 << 28)))


class Drive:
    """One run of one network that changes."""

    def __init__(self, seed: int, boxes: int, steps: int, engine: str) -> None:
        self.chance = random.Random(seed)
        self.engine, self.virtual = engine, engine == "sim"
        self.first = self.plan = first_plan(self.chance, boxes)
        self.editor = Editor(self.chance)
        self.way = any_way(self.chance)
        self.boxes, self.steps = boxes, steps
        self.given: dict[str, list[Row]] = defaultdict(list)
        self.streams: dict[str, list[Row]] = {}
        self.pushes: list[tuple[str, list[Row]]] = []
        self.seams: list[tuple[Attached | Change | None, Seamed]] = []
        self.attached: dict[str, Attached] = {}
        self.paused: set[str] = set()
        self.pending: Future[Any] | None = None
        self.moment = 0.0
        self.did: list[str] = []
        self.untouched = 0
        self.looked: dict[str, Any] = {}
        """What detached fragments had delivered."""

    # What may happen

    def go(self) -> int:
        """Run it, and compare; return the number of seams."""
        with recording() as record, ThreadPoolExecutor(1) as pool:
            self.pool = pool
            self.run: Running = hw.start(hw.load(self.plan.mapping()), engine=self.engine, **self.way.options())
            try:
                for _ in range(self.steps):
                    self.chance.choice(
                        (
                            self.push,
                            self.push,
                            self.push,
                            self.change,
                            self.change,
                            self.attach,
                            self.attach,
                            self.detach,
                            self.detach,
                            self.hold,
                            self.hold,
                            self.hold,
                            self.pause,
                            self.resume,
                            self.step,
                            self.policy,
                        )
                    )()
                self.settle()
                self.push()
                result = self.finish()
            except BaseException:
                if self.run._thread is not None:  # the next run must not be recorded together with this one
                    self.run._control.stop(drain=True)
                    wait([self.run._over], PATIENCE)
                raise
        self.compare(result, record)
        if not self.virtual and self.chance.random() < 0.3:
            self.untouched = self.check_undisturbed(result)
        return len(self.seams)

    def finish(self) -> Any:
        if self.virtual:
            return self.run.wait(PATIENCE)
        if self.chance.random() < 0.3:  # change it while it ends
            before = self.plan.sources
            self.did.append("end")
            for name in before:
                self.run.end(name)
            with contextlib.suppress(EndedError):
                self.change()
            for name in sorted(self.paused):
                self.run.resume(name)
            if not set(self.plan.sources) - set(before):
                return self.run.wait(PATIENCE)
        self.run._paused |= self.paused
        return self.run.stop(drain=True)

    def at(self) -> dict[str, Any]:
        """Return the moment for the next command, in virtual time."""
        if not self.virtual:
            return {}
        self.moment += self.chance.choice((0.0, 0.0, 1e-5, 1e-4, 1e-3, 0.01))
        return {"at": self.moment}

    def push(self) -> None:
        open_ = list(self.plan.sources)
        if self.pending is not None:  # not one that comes or goes
            open_ = [name for name in open_ if name in self.seams[-1][1].before.sources]
        if not open_ or ("all" in self.paused and self.way.memory < 1 << 20):  # it would wait for room
            return
        source = self.chance.choice(open_)
        if source not in self.streams:
            drawn = _seeded(self.chance.randrange(1 << 20), MOST, True, 3)
            rows = _rows(drawn, BIGINT, True, 1000 * len(self.streams))
            self.streams[source] = [{name: row[name] for name in COMMON} for row in rows]
        begin = len(self.given[source])
        rows = self.streams[source][begin : begin + self.chance.choice((1, 2, 5, 12, 40))]
        if not rows:
            return
        self.did.append(f"push {source} {len(rows)}")
        self.given[source] += rows
        self.pushes.append((source, rows))
        options = self.at() or {"timeout": PATIENCE}
        self.run.push(source, rows, **options)

    def pause(self) -> None:
        names = [part.name for part in self.plan.every]
        if not names or self.pending:
            return
        box = self.chance.choice([*names, "all"])
        if box == "all" and self.virtual:
            return
        self.did.append(f"pause {box}")
        self.run.pause(box, **self.at())
        self.run._paused.discard(box)  # changes that have to wait for it are not refused then
        self.paused.add(box)

    def hold(self) -> None:
        """Change the network while something waits."""
        self.pause()
        self.push()
        self.chance.choice((self.change, self.attach, self.detach))()
        self.push()

    def resume(self) -> None:
        if self.paused:
            box = self.chance.choice(sorted(self.paused))
            self.did.append(f"resume {box}")
            for one in sorted(self.paused) if box == "all" else [box]:
                self.run.resume(one, **self.at())
                self.paused.discard(one)

    def step(self) -> None:
        if self.paused and not self.pending:
            box = self.chance.choice(sorted(self.paused))
            if box != "all" and "all" in self.paused:
                return
            self.did.append(f"step {box}")
            self.run._paused |= self.paused
            try:
                self.run.step(box, self.chance.choice((1, 3, 50)), **self.at())
            except RunError as error:  # another worker has not yet ended what the box was doing
                if "still at work" not in str(error):
                    raise
            self.run._paused.clear()

    def policy(self) -> None:
        name = self.chance.choice(("fifo", "round-robin", "slope-slack", "rate-based", "segment"))
        self.did.append(f"policy {name}")
        self.run.policy(name, **self.at())

    def attach(self) -> None:
        self.settle()
        piece = self.editor.piece(self.plan)
        after = replace(self.plan, pieces={**self.plan.pieces, piece.name: piece})
        self.did.append(f"attach {piece.mapping()}")
        at = self.at()

        def attach() -> Attached:
            made = self.run.attach(piece.mapping(), **at)
            self.attached[piece.name] = made
            return made

        self.alter(attach, Seamed(self.plan, after), set())

    def detach(self) -> None:
        self.settle()
        if not self.plan.pieces or self.virtual:
            return
        piece = self.plan.pieces[self.chance.choice(sorted(self.plan.pieces))]
        flush = self.chance.random() < 0.5
        left = {name: one for name, one in self.plan.pieces.items() if name != piece.name}
        own = [part.name for part in piece.parts]
        stateful = frozenset(part.name for part in piece.parts if part.stateful) if flush else frozenset()
        self.did.append(f"detach {piece.name} flush={flush}")
        self.release(own)
        one = self.attached.pop(piece.name)

        def detach() -> None:
            one.detach(flush=flush)
            self.looked |= {name: one.read(own_name) for own_name, name in one.outputs.items()}

        after = replace(self.plan, pieces=left)
        self.alter(detach, Seamed(self.plan, after, frozenset(), stateful), set(own))

    def change(self) -> None:
        self.settle()
        after = self.editor.change(self.plan)
        was, now = self.plan.marks(), after.marks()
        before = {part.name: part for part in self.plan.every}
        affected = [name for name in was if was[name] != now.get(name)]
        gone = [name for name in affected if name not in now]
        names: dict[str, Any] = {"restart": [], "keep": []}
        for part in after.every:
            if part.name in affected and before[part.name].stateful:
                names[
                    "keep" if self._keepable(before[part.name], part) and self.chance.random() < 0.5 else "restart"
                ].append(part.name)
        ends = [name for name in (*gone, *names["restart"]) if before[name].stateful]
        names["flush"] = [name for name in ends if self.chance.random() < 0.5]
        if ends and set(ends) == set(names["flush"]) and self.chance.random() < 0.5:
            names["flush"] = "all"
        flushed = frozenset(ends if names["flush"] == "all" else names["flush"])
        seamed = Seamed(self.plan, after, frozenset(names["keep"]), flushed)
        told = {part.name: part.pair.mapping() for part in after.parts if was.get(part.name) != now[part.name]}
        self.did.append(f"change {told} gone {gone} outputs {after.outputs} {names}")
        self.release(affected)
        at = self.at()
        network = hw.load(after.mapping())

        def change() -> Change:
            made = self.run.change(network, **names, **at)
            assert set(made.kept) == {name for name in now if was.get(name) == now[name]}
            assert set(made.added) == {name for name in now if name not in was}
            assert (set(made.restarted), set(made.carried)) == (set(names["restart"]), set(names["keep"]))
            return made

        self.alter(change, seamed, set(affected))

    def _keepable(self, was: Part, now: Part) -> bool:
        return (was.pair.settings, was.pair.inputs) == (now.pair.settings, now.pair.inputs)

    def release(self, affected: list[str]) -> None:
        """Resume what a change affects, if it is paused: it would be refused."""
        held = [name for name in affected if name in self.paused or "all" in self.paused]
        for name in sorted(self.paused) if held and "all" in self.paused else held:
            self.did.append(f"resume {name}")
            self.run.resume(name, **self.at())
            self.paused.discard(name)

    def alter(self, alter: Callable[[], Any], seamed: Seamed, affected: set[str]) -> None:
        """Carry out an alteration; where it has to wait for a paused box, resume that later."""
        self.seams.append((None, seamed))
        place = len(self.seams) - 1
        self.plan = seamed.after

        def carry_out() -> None:
            try:
                made = alter()
            except RunError as error:
                if "the run has ended" in str(error):
                    raise EndedError from error
                raise
            self.seams[place] = (made if isinstance(made, Attached | Change) else None), seamed

        if self.virtual:
            carry_out()
            return
        self.pending = self.pool.submit(carry_out)
        waits = affected and (self.paused & seamed.before.upstream(sorted(affected)))
        turned = {
            name
            for name in {**seamed.before.shown, **seamed.after.shown}
            if seamed.before.shown.get(name) != seamed.after.shown.get(name)
        }
        if self.paused and (waits or "all" in self.paused or turned):
            return  # it goes on when something is resumed
        if self.chance.random() < 0.5:
            return  # tuples come while it is made
        self.settle()

    def settle(self) -> None:
        """Let what is under way be done."""
        if self.pending is None:
            if self.virtual and self.paused:
                self.did.append("resume all")
                for name in sorted(self.paused):
                    self.run.resume(name, **self.at())
                self.paused.clear()
            return
        if self.paused and not self.pending.done():
            for name in sorted(self.paused):
                self.did.append(f"resume {name}")
                self.run.resume(name)
            self.paused.clear()
        pending, self.pending = self.pending, None
        pending.result(PATIENCE)

    # What must have come out

    def compare(self, result: Any, record: Record) -> None:
        told = "\n".join(self.did)
        numbers = sorted(event.number for event in record.events if event.kind == "seam")
        seams = dict(zip(numbers, [seamed for _, seamed in self.seams], strict=False))
        assert len(numbers) <= len(self.seams)
        for number, (made, _) in zip(numbers, self.seams, strict=False):
            if made is not None:
                assert made.seam == number
        wanted = expected(self.first, record, self.given, seams)
        loose = {name for _, one in self.seams for plan in (one.before, one.after) for name in _loose_outputs(plan)}
        loose |= _loose_outputs(self.first)
        assert sorted(event.number for event in record.events) == list(range(len(record.events)))
        tables = {**result.outputs}
        for one in [name for made in self.attached.values() for name in made.outputs.values()]:
            assert one in tables, one
        tables |= self.looked
        for name, rows in wanted.items():
            actual = tables[name].to_pylist()
            if name in loose:
                actual, rows = in_any_order(actual), in_any_order(rows)
            try:
                assert_same(actual, rows, f"output '{name}'")
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.way}\n{self.first.mapping()}\n{told}\nseams {numbers}") from None
        assert result.dead_letters.num_rows == 0

    def check_undisturbed(self, result: Any) -> int:
        """Compare what nothing has touched with a run without any change, to the last bit; return how many outputs."""
        plans = [self.first, *(one.after for _, one in self.seams)]
        still = [
            name for name, arc in self.first.outputs.items() if all(_same(self.first, one, name, arc) for one in plans)
        ]
        still = [name for name in still if name not in _loose_outputs(self.first)]
        control = hw.start(hw.load(self.first.mapping()), engine="local", policy="fifo", train=7)
        for source, rows in self.pushes:
            if source in self.first.sources:
                control.push(source, rows)
        wanted = control.stop(drain=True).outputs
        for name in still:
            one, other = (repr(table.to_pylist()) for table in (result.outputs[name], wanted[name]))
            assert one == other, f"output '{name}' has noticed a change\n" + "\n".join(self.did)
        return len(still)


def _same(one: Plan, other: Plan, output: str, arc: str) -> bool:
    """Whether an output shows the same in both plans."""
    box = arc.partition(".")[0]
    if other.outputs.get(output) != arc:
        return False
    return box in other.sources if box in one.sources else one.marks()[box] == other.marks().get(box)


def _loose_outputs(plan: Plan) -> set[str]:
    loose = plan.loose()
    return {name for name, arc in plan.shown.items() if arc.partition(".")[0] in loose}
