"""History of a point: an hour of 10,000 tuples/s with 10,000 keys, written, looked up and scanned.

Tuples are two integers and a double, with their hidden values 44 bytes. They are appended as fast as the history takes
them, and then at a steady rate, for the share of a core that its threads need. Lookups of one key and scans of
everything come after that; the first lookup opens the files. The share of bytes is that of the pages' bytes which are
read; what the process asked the system for comes from `/proc/self/io`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.memory import resident
from headway.clock import SECOND, WallClock, processor, stopwatch
from headway.columns import Column
from headway.durations import Duration
from headway.history import History, Kept, Writers, read_files
from headway.network.schema import Schema
from headway.trains import Train, constant

TUPLES = 36_000_000
KEYS = 10_000
RATE = 10_000
TRAIN = 65_536
STEADY = 1_000_000
SECONDS = 20
LOOKUPS = 20
KEPT = Kept(Schema.parse("sid int, time bigint, v double"), "sid", "time")


def make_trains(tuples: int, train: int, first: int = 0) -> Iterator[Train]:
    """Yield trains of random keys; times go on by one for every second of the hour."""
    chance = np.random.default_rng(first)
    for start in range(first, first + tuples, train):
        count = min(train, first + tuples - start)
        numbers = np.arange(start, start + count)
        keys = chance.integers(0, KEYS, count).astype(np.int32)
        columns = (Column(keys), Column(numbers // RATE), Column(chance.random(count)))
        yield Train(columns, constant(start * (SECOND // RATE), count), numbers)


def settle(history: History) -> None:
    """Wait until everything is written and merged."""
    history.flush()
    while history.work():
        pass


def asked() -> int:
    """Return the bytes that this process has asked the system for."""
    return int(Path("/proc/self/io").read_text().split()[1])


def write(history: History, tuples: int) -> None:
    begun, used = stopwatch(), processor()
    for one in make_trains(tuples, TRAIN):
        history.append(one)
    history.flush()
    took = (stopwatch() - begun) / SECOND
    print(f"| written, as fast as possible | {tuples / took / 1e6:.2f} million tuples/s |")
    settle(history)
    print(f"| until merged, processor time with making the tuples | {(processor() - used) / SECOND:.1f} s |")
    size = sum([file.bytes for file in history.files])
    print(f"| files | {len(history.files)}, {size / 1e6:,.0f} MB, {size / tuples:.1f} bytes/tuple |")


def steady(history: History, rate: int, seconds: int, first: int, train: int) -> None:
    """Append prepared trains at a rate; the processor's time without that of the same loop without a history."""
    trains = list(make_trains(rate * seconds, train, first))
    clock, shares, behind = WallClock(), [], 0
    for target in (None, history):
        begun, used, sent = clock.now(), processor(), 0
        for one in trains:
            clock.sleep(begun + sent * SECOND // rate - clock.now())
            if target is not None:
                target.append(one)
                behind += target.behind
            sent += len(one)
        clock.sleep(begun + sent * SECOND // rate - clock.now())
        shares.append((processor() - used) / (clock.now() - begun))
    late = f"{history.unwritten:,} tuples in memory at the end, {behind} times behind"
    print(f"| share of one core at {rate:,} tuples/s for {seconds} s | {shares[1] - shares[0]:.1%}; {late} |")


def look_up(history: History, lookups: int) -> None:
    pages = sum([file.data for file in history.files])
    chance = np.random.default_rng(1)
    taken, shares, found, read = [], [], 0, 0
    for key in chance.integers(0, KEYS, lookups).tolist():
        before, begun = asked(), stopwatch()
        with history.read(key=key) as reader:
            found += sum([len(train) for train in reader])
            taken.append((stopwatch() - begun) / SECOND)
            shares.append(reader.bytes_read / pages)
        read = max(read, asked() - before) if len(taken) > 1 else 0
    print(f"| lookup of a key, first | {taken[0] * 1e3:.0f} ms |")
    print(
        f"| lookup of a key, median of the others | {np.median(taken[1:]) * 1e3:.0f} ms, {found // lookups:,} tuples |"
    )
    print(f"| share of the pages' bytes, mean and worst | {np.mean(shares):.2%}, {max(shares):.2%} |")
    print(f"| bytes asked of the system, worst but the first | {read / pages:.2%} |")
    print(f"| plan | {history.plan(key=1)} |")


def scan(history: History) -> None:
    for ahead in (False, True):
        begun, used, count = stopwatch(), processor(), 0
        for train in history.read(ahead=ahead):
            count += len(train)
        took, busy = (stopwatch() - begun) / SECOND, (processor() - used) / SECOND
        how = "read ahead" if ahead else "one thread"
        print(
            f"| scan of everything, {how} | {count / took / 1e6:.1f} million tuples/s, "
            f"{count / busy / 1e6:.1f} per second of the processor |"
        )
    begun = stopwatch()
    count = sum([len(train) for train in read_files(history.place, history.files, KEPT, columns=["v"])])
    print(f"| scan of one column | {count / ((stopwatch() - begun) / SECOND) / 1e6:.1f} million tuples/s |")
    begun = stopwatch()
    found = history.first_since(Duration.parse("10m"))
    print(f"| `since: 10 minutes` | {(stopwatch() - begun) / SECOND * 1e3:.0f} ms, from {found.number:,} on |")


def append_small(history: History) -> None:
    """Print what the scheduler's thread pays for an append."""
    for size in (1, 65_536):
        trains = list(make_trains(20_000 if size == 1 else 20 * size, size, history.edge.number + 1))
        begun = stopwatch()
        for one in trains:
            history.append(one)
        print(f"| append of a train of {size:,} | {(stopwatch() - begun) / len(trains) / 1e3:.1f} µs |")
        settle(history)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--tuples", type=int, default=TUPLES, help="how many tuples (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=STEADY, help="tuples/s of the steady run (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of the steady run (default: %(default)s)")
    parser.add_argument("--lookups", type=int, default=LOOKUPS, help="how many keys (default: %(default)s)")
    given = parser.parse_args(arguments)
    print(f"## History: {given.tuples:,} tuples, {KEYS:,} keys\n\n| | |\n|---|---|")
    folder = tempfile.mkdtemp(prefix="headway-history-")
    try:
        with Writers() as writers:
            with History(f"{folder}/steady", KEPT, writers) as history:
                steady(history, given.rate, given.seconds, 0, 8192)
            with History(f"{folder}/all", KEPT, writers) as history:
                write(history, given.tuples)
                look_up(history, given.lookups)
                scan(history)
                append_small(history)
        print(f"| resident memory at the end | {resident():,.0f} MB |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
