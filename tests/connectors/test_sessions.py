"""The session that connectors find."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from headway.connectors.spark import find_session, need_session
from headway.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALONE = """
import sys
from headway.connectors import open_source, open_sink, spark
from headway.network.schema import Schema
schema = Schema.parse("a int")
reader = open_source("s", schema, {"spark": {"format": "rate"}})
open_sink("o", schema, {"spark": {"format": "noop"}})
assert "pyspark" not in sys.modules, "Spark is loaded before it is needed"
assert spark.find_session() is None
"""


def test_every_thread_finds_it(spark: SparkSession) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(find_session()))
    thread.start()
    thread.join()
    assert found == [find_session()]
    assert need_session("source 's'", InputError).sparkContext is spark.sparkContext


def test_spark_is_not_loaded_before_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", _ALONE], check=True)
