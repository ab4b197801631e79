"""Run networks over several sources side by side on Spark, or go on with them: FOLDER SCALE TRAIN KIND..."""

from __future__ import annotations

import sys
import threading
import traceback
from pathlib import Path

from headway.engines.spark.session import open_session
from tests.engines.spark.fleets import run_one


def main() -> int:
    """Run those that are not complete to their ends; returns how many failed."""
    folder, scale, train, *kinds = sys.argv[1:]
    open_session("local[2]")
    failed = []

    def run(kind: str) -> None:
        try:
            run_one(Path(folder, kind), kind, float(scale), int(train))
            print("complete", kind, flush=True)
        except BaseException:
            failed.append(kind)
            traceback.print_exc()

    left = [kind for kind in kinds if not Path(folder, kind, "done").exists()]
    threads = [threading.Thread(target=run, args=(kind,)) for kind in left]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
