"""Pickled values: they travel unopened."""

from __future__ import annotations

import subprocess
import sys

from pyspark import cloudpickle

from headway.engines.spark.wire.protocol import Pickled

PROGRAM = """
import sys
from pyspark import cloudpickle
work = cloudpickle.loads(bytes.fromhex(sys.argv[1]))
assert work.key == "k" and "fractions" not in sys.modules
again = cloudpickle.loads(cloudpickle.dumps(work))
assert "fractions" not in sys.modules
print(again.open(), "fractions" in sys.modules)
"""


def test_a_process_that_passes_it_on_does_not_import_what_it_is_made_of() -> None:
    from fractions import Fraction

    data: bytes = cloudpickle.dumps(Pickled("k", Fraction(1, 3)))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", PROGRAM, data.hex()], capture_output=True, text=True, check=False)
    assert done.stdout == "1/3 True\n", done.stderr


def test_who_sealed_it_opens_it_without_unpacking() -> None:
    content = [1]
    assert Pickled("k", content).open() is content
