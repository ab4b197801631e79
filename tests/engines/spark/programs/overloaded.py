"""Run a network that is too much on Spark, with a state: STATE FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.feather as feather

import headway as hw
from tests.engines.spark.overloads import overloaded


def main() -> None:
    """Run it to the end; tables and the summary are left in the folder."""
    state, folder = sys.argv[1:]
    result = hw.run(overloaded([[12, 300], [25, 5000], [5, 300]]), engine="spark", state=state)
    for name, table in result.outputs.items():
        feather.write_feather(table, str(Path(folder, f"{name}.arrow")), compression="uncompressed")
    Path(folder, "summary.json").write_text(json.dumps(result.summary["shedding"]))
    print("complete")


if __name__ == "__main__":
    main()
