"""Run the border-watch example on a cluster: MASTER STATE FOLDER SECONDS RATE TRAIN."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.feather as feather

from tests.engines.spark.clusters import run_border_watch


def main() -> None:
    """Run it to the end; tables are left in the folder."""
    master, state, folder, seconds, rate, train = sys.argv[1:]
    how = {"engine": "spark", "master": master, "state": state, "train": int(train), "cut": {"units": "one"}}
    tables = run_border_watch(float(seconds), float(rate), **how)
    for name, table in tables.items():
        feather.write_feather(table, str(Path(folder, f"{name}.arrow")), compression="uncompressed")
    print("complete")


if __name__ == "__main__":
    main()
