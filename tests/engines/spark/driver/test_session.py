"""The session: what opening it must leave alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from headway.engines.spark.driver.session import ARCHIVE_SETTING, hushed, launcher, open_session, package

PROGRAM = """
import os, signal, threading
from headway.engines.spark.driver.session import open_session

found = []
threads = [threading.Thread(target=lambda: found.append(open_session("local[1]"))) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
contexts = {session.sparkContext.applicationId for session in found}
print(len(found), len(contexts), "PYSPARK_PYTHON" in os.environ)
found[0].stop()

def mine(number, frame):
    pass

signal.signal(signal.SIGINT, mine)
session = open_session("local[1]")
print(session.sparkContext.applicationId in contexts, signal.getsignal(signal.SIGINT) is mine)
session.stop()
print("PYSPARK_PYTHON" in os.environ)
"""


def test_several_threads_open_one_session_and_the_next_one_leaves_ctrl_c_as_it_was(tmp_path: Path) -> None:
    """An archive of classes that is none does not matter to them."""
    (tmp_path / "classes").write_bytes(b"these are no classes")
    environment = {key: os.environ[key] for key in os.environ if key != "PYSPARK_PYTHON"}
    # In a process of its own: this one's session is open already.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, ARCHIVE_SETTING: str(tmp_path / "classes")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("8 1 False\nFalse True\nFalse\n", ""), "Spark itself is quiet"


def test_what_py4j_says_in_nobody_s_name_is_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()

    def say(path: str) -> None:
        root.handle(root.makeRecord("root", logging.ERROR, path, 1, f"from {path}", (), None))

    with hushed():
        say("/site-packages/py4j/java_gateway.py")
        say("/somebody/else.py")
    say("/site-packages/py4j/later.py")
    assert caplog.messages == ["from /somebody/else.py", "from /site-packages/py4j/later.py"]


def test_a_session_that_is_there_takes_what_it_can_and_names_the_rest(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    memory = spark.conf.get("spark.driver.memory")
    try:
        open_session(None, {"spark.sql.files.maxPartitionBytes": "1000000", "spark.driver.memory": str(memory)})
        assert spark.conf.get("spark.sql.files.maxPartitionBytes") == "1000000"
        assert not caplog.messages
        open_session(
            None, {"spark.driver.memory": "17g", "spark.executor.cores": "3", "spark.sql.ansi.enabled": "true"}
        )
        (said,) = caplog.messages
        assert "cannot change spark.driver.memory, spark.executor.cores; stop it first" in said
        assert spark.conf.get("spark.driver.memory") == memory
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))


def test_workers_take_the_pyspark_that_is_compiled(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(lambda at: __import__("pyspark").__file__).collect()
    assert found == [pyspark.__file__]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/x/pyspark.zip:/x/py4j-0.10.9.9-src.zip:/spark.jar:/my own:*", "/spark.jar:/my own:*"),
        ("/x/pyspark.zip", ""),
        ("", ""),
    ],
)
def test_the_launcher_leaves_out_only_spark_s_archives(path: str, expected: str) -> None:
    program = "import os, sys; print(os.environ['PYTHONPATH']); print(sys.argv[1:])"
    done = subprocess.run(
        [launcher(), "-c", program, "a b", "*"], env={"PYTHONPATH": path, "kept": "no"}, capture_output=True, text=True
    )
    assert done.stdout == f"{expected}\n['a b', '*']\n", done.stderr


def test_another_spark_keeps_its_own_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    assert launcher() != sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert launcher() == sys.executable


def test_where_temporary_files_cannot_be_executed_python_is_started_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert launcher() == sys.executable


def test_executors_of_a_cluster_get_what_is_compiled() -> None:
    program = "import headway.kernels.compile as one; print(one.__file__)"
    archive = package()
    environment = {**os.environ, "PYTHONPATH": archive}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd="/")
    assert done.stdout == f"{archive}/headway/kernels/compile.pyc\n", done.stderr
