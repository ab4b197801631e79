"""Sealed values: they travel unopened."""

from __future__ import annotations

import subprocess
import sys

from pyspark import cloudpickle

from headway.engines.spark.sealed import Sealed

PROGRAM = """
import sys
from pyspark import cloudpickle
sealed = cloudpickle.loads(bytes.fromhex(sys.argv[1]))
assert sealed.key == "k" and "fractions" not in sys.modules
again = cloudpickle.loads(cloudpickle.dumps(sealed))
assert "fractions" not in sys.modules
print(again.open(), "fractions" in sys.modules)
"""


def test_a_process_that_passes_it_on_does_not_import_what_it_is_made_of() -> None:
    from fractions import Fraction

    data: bytes = cloudpickle.dumps(Sealed("k", Fraction(1, 3)))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", PROGRAM, data.hex()], capture_output=True, text=True, check=False)
    assert done.stdout == "1/3 True\n", done.stderr


def test_who_sealed_it_opens_it_without_unpacking() -> None:
    content = [1]
    assert Sealed("k", content).open() is content
