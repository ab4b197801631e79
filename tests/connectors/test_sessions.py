"""The session that connectors find."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from headway.connectors.sessions import find_session, need_session
from headway.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALONE = """
import sys
from headway.connectors import open_source, open_sink, sessions
from headway.errors import InputError
from headway.schema import Schema
schema = Schema.parse("a int")
reader = open_source("s", schema, {"spark": {"format": "rate"}})
open_sink("o", schema, {"spark": {"format": "noop"}})
assert "pyspark" not in sys.modules, "Spark is loaded before it is needed"
assert sessions.find_session() is None
try:
    reader.read(1)
except InputError as error:
    print(error)
"""


def test_every_thread_finds_it(spark: SparkSession) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(find_session()))
    thread.start()
    thread.join()
    assert found == [find_session()]
    assert need_session("source 's'", InputError).sparkContext is spark.sparkContext


def test_nobody_opens_one() -> None:
    """Connectors alone load no Spark, and say what to do when they need a session."""
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("source 's': there is no Spark session; make one with SparkSession.builder")
