"""A day in the life of a network: it is started, asked, changed, looked into and stopped, and nobody else notices."""

import random
import sys
from pathlib import Path

import headway as hw

HERE = Path(__file__).parent
SOLDIERS, SECTORS = 200, 6


def reports(hour: int, seed: int = 0) -> list[tuple[int, int, int, int]]:
    """Return an hour of reports: four a second, each of one of the soldiers."""
    dice = random.Random(1000 * hour + seed)
    return [
        (dice.randrange(SOLDIERS), second, dice.randrange(SECTORS), dice.randrange(20, 50))
        for second in range(3600 * hour, 3600 * (hour + 1))
        for _ in range(4)
    ]


def look_inside(run: hw.Running) -> None:
    """Show what waits for a box that is paused, let it take one tuple, and show its open windows."""
    waiting = run.queue("counts")["across"]
    print(f"       {waiting.num_rows} of the tuples that wait for 'counts'; the first is {waiting.to_pylist()[0]}")
    print(f"       a single step takes {run.step('counts')} tuple; open windows now:")
    for window in run.windows("counts").to_pylist()[:3]:
        print(f"         {window}")


def main(engine: str = "local") -> dict[str, int]:
    """Live through a day; return a few numbers of it."""
    told = {}
    network = hw.load(HERE / "border.yaml")
    with hw.start(network, engine=engine) as run:
        print("08:00  the network is started, and reports come in")
        for hour in (8, 9):
            run.push("positions", reports(hour))
        run.settle()
        print(f"       {run.status().tuples_in:,} reports so far, {run.read('alarms').num_rows} alarms")

        print("10:00  an officer asks for one soldier's crossings: answered from the history, by key")
        print(f"       {run.explain(HERE / 'one_soldier.yaml')}")
        trail = run.attach(HERE / "one_soldier.yaml").result()
        told["trail"] = trail.num_rows
        print(f"       soldier 7 has crossed {trail.num_rows} times")

        print("10:05  an analyst attaches a query that begins half an hour ago, and stays")
        busiest = run.attach(HERE / "busiest.yaml")
        run.push("positions", reports(10))
        run.settle()
        told["busiest"] = busiest.read().num_rows
        print(f"       {told['busiest']} windows of ten minutes, from 9:30 on")

        print("12:00  the threshold changes; first the question what that would do")
        stricter = network.to_mapping()
        stricter["boxes"]["across"]["where"] = "pos >= 35"
        try:
            run.change(stricter, try_only=True)
        except hw.HeadwayError as error:
            print(f"       refused: {error}")
        change = run.change(stricter, keep="all", base=run.version)
        print(f"       {change}")
        run.push("positions", reports(12))
        run.settle()
        told["alarms"] = run.read("alarms").num_rows
        print(f"       {told['alarms']} alarms")

        print("15:00  why are there so few alarms? A look inside")
        run.pause("counts")
        run.push("positions", reports(15)[:500])
        try:
            look_inside(run)
        except hw.HeadwayError as error:  # on Spark, queues and windows are in other processes
            print(f"       {error}")
        run.resume("counts")

        print("18:00  somebody reads the view that nobody has read all day")
        run.settle()
        told["minutes"] = run.read("minutes").num_rows
        print(f"       {told['minutes']} counts by minute and sector")

        print("20:00  the analyst goes home; the network is stopped, and what is open is flushed")
        busiest.detach(flush=True)
    result = run.wait()
    told["in"], told["total"] = result.summary["tuples_in"], result.outputs["alarms"].num_rows
    print(f"       {told['in']:,} reports and {told['total']} alarms in all")
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
