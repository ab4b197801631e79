"""A real standalone cluster on loopback: a master and workers as processes, from the package that pip installed."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import yaml
from pyarrow import csv

import headway as hw
from headway.engines.spark.driver.session import check_java, launcher, map_archive
from tests.engines.spark.crashing import PATIENCE, ROOT, Process

BORDER = ROOT / "examples" / "border-watch"
_SPARK = Path(pyspark.__file__).parent
_MASTER = re.compile(r"spark://127\.0\.0\.1:[1-9]\d*")


class Daemon(Process):
    """A master or a worker, in a session of its own: a worker's executors and their Python workers are in it too."""

    def __init__(self, kind: str, *arguments: object, log: Path) -> None:
        """Start it; `kind` is a class of Spark's."""
        command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        environment = {
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {map_archive(check_java())}",
            "PYSPARK_PYTHON": sys.executable,
        }
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        super().__init__([*command, *common, *map(str, arguments)], log=log, environment=environment)


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path, workers: int) -> None:
        """Start them, and wait until all workers are known to the master."""
        self.daemons: list[Daemon] = []
        try:
            master = self._start("master.Master", log=folder / "master")
            _wait(lambda: _MASTER.search(master.said) is not None, master)
            found = _MASTER.search(master.said)
            assert found is not None
            self.url = found[0]
            size = ["--cores", "1", "--memory", "700m"]
            self.workers = [
                self._start(
                    "worker.Worker", *size, "--work-dir", folder / f"w{at}", self.url, log=folder / f"w{at}.log"
                )
                for at in range(workers)
            ]
            _wait(lambda: master.said.count("Registering worker") == workers, master)
        except BaseException:
            self.stop()
            raise

    def _start(self, kind: str, *arguments: object, log: Path) -> Daemon:
        daemon = Daemon(kind, *arguments, log=log)
        self.daemons.append(daemon)
        return daemon

    def stop(self) -> None:
        """Kill everybody."""
        for daemon in self.daemons:
            daemon.kill()


def _wait(condition: Any, daemon: Daemon) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert not daemon.ended, daemon.said
        assert time.monotonic() < deadline, daemon.said
        time.sleep(0.05)


@contextlib.contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster, and leave nothing of it behind."""
    running = Cluster(folder, workers)
    try:
        yield running
    finally:
        running.stop()


def write_settings(folder: Path) -> dict[str, str]:
    """Write Spark's settings for small workers, as an administrator does; returns the environment that finds them."""
    folder.mkdir()
    size = "spark.executor.memory 640m\nspark.executor.cores 1\n"
    start = f"spark.executor.extraJavaOptions -XX:+UseSerialGC {map_archive(check_java())}\n"  # sooner
    (folder / "spark-defaults.conf").write_text(size + start)
    return {"SPARK_CONF_DIR": str(folder), "PYSPARK_PYTHON": launcher()}


def border_watch(seconds: float, rate: float) -> dict[str, Any]:
    """Return the example's network with less data, arriving more slowly."""
    network: dict[str, Any] = yaml.safe_load((BORDER / "network.yaml").read_text())
    for name, share in (("positions", 1.0), ("vehicles", 0.05)):
        settings = network["sources"][name]["source"]["generate"]
        settings |= {"rate": rate * share, "count": int(seconds * rate * share)}
    # Fewer tuples must show something too.
    network["boxes"]["crowded"]["where"] = ["n >= 4", "n >= 2"]
    network["boxes"]["deep"]["where"] = "pos >= 33"
    return network


def run_border_watch(seconds: float, rate: float, **how: Any) -> Mapping[str, Any]:
    """Run it; returns the tables."""
    tables = {"sectors.csv": csv.read_csv(BORDER / "sectors.csv")}
    return hw.run(border_watch(seconds, rate), tables=tables, **how).outputs
