"""Run networks over several sources side by side on Spark, or go on with them: FOLDER SCALE TRAIN KIND..."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path

from headway.engines.spark.driver.session import open_session
from headway.errors import RunError
from tests.engines.spark.fleets import run_one

ATTEMPTS = 5
"""On a busy machine Spark gives up on processes that do not start in ten seconds. Then a run is started again."""
PATIENCE = 120.0
"""Seconds that a run may take to start before the next one starts: too many at once would only starve each other."""


def main() -> int:
    """Run those that are not complete to their ends; returns how many failed."""
    folder, scale, train, *kinds = sys.argv[1:]
    open_session("local[2]")
    failed = []

    def run(kind: str, running: threading.Event) -> None:
        try:
            for left in reversed(range(ATTEMPTS)):
                try:
                    run_one(Path(folder, kind), kind, float(scale), int(train), lambda status: running.set())
                    break
                except RunError as error:
                    print(kind, error, flush=True)
                    if not left or "was lost" not in str(error):
                        raise
            print("complete", kind, flush=True)
        except BaseException:
            failed.append(kind)
            traceback.print_exc()
        finally:
            running.set()

    threads = []
    for kind in [kind for kind in kinds if not Path(folder, kind, "done").exists()]:
        running = threading.Event()
        threads.append(threading.Thread(target=run, args=(kind, running)))
        threads[-1].start()
        running.wait(PATIENCE)
    for thread in threads:
        thread.join()
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
