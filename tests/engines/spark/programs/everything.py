"""Run the network with every stateful operator on Spark: EVENTS STATE FOLDER RATE TRAIN UNITS; a rate of 0 is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.feather as feather

import headway as hw
from tests.engines.spark.crashing import EVERYTHING, outputs_in


def main() -> None:
    """Run it to the end; tables are left in the folder."""
    events, state, folder, rate, train, units = sys.argv[1:]
    result = hw.run(
        EVERYTHING,
        {"events": events},
        engine="spark",
        master="local[2]",
        state=state,
        outputs=outputs_in(Path(folder)),
        dead_letters=str(Path(folder, "letters.csv")),
        rates={"events": float(rate)} if float(rate) else {},
        train=int(train),
        cut={"units": units},
    )
    for name, table in result.outputs.items():
        feather.write_feather(table, str(Path(folder, f"{name}.arrow")), compression="uncompressed")
    print("interrupted" if result.summary["interrupted"] else "complete", result.summary["tuples_in"])


if __name__ == "__main__":
    main()
