"""The Spark session: the user's if there is one, otherwise our own, without Spark's log output and on loopback only."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headway.connectors.spark import find_session
from headway.engines.signals import SIGNALS
from headway.errors import RunError
from headway.expressions.userfunctions import Functions
from headway.storage.temporary import make_temporary, remove_temporary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*]"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA = 17
_FEW_CORES = 4
_opening = threading.RLock()
_log = logging.getLogger("headway")

_LAUNCHER = """\
#!/bin/sh
set -f
IFS=: kept=
for one in $PYTHONPATH; do
    case $one in */pyspark.zip | */py4j-*-src.zip) ;; *) kept=$kept${{kept:+:}}$one ;; esac
done
unset IFS
PYTHONPATH=$kept exec {0} "$@"
"""

STREAMING = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.stopTimeout": "20s",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
}
"""Settings of every unit's query; they are applied to the session that starts it."""


def open_session(master: str | None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return this process's session, or a new one on `master`, which stays until the process ends.

    A session that is there already takes the settings that Spark can change while it runs; a warning names the others.
    Thread-safe: sessions are opened one at a time, because that briefly changes the state of the process.
    """
    with _opening:
        if not jvm_alive(0.0):  # the JVM was killed since
            _forget()
        session = find_session()
        if session is None:
            return _start_session(master or DEFAULT_MASTER, settings or {})
        if master is not None and session.sparkContext.master != master:
            raise RunError(
                f"--master {master}: this process has a Spark session on {session.sparkContext.master} already; "
                "stop it first"
            )
        _adapt(session, settings or {})
        return session


def _adapt(session: SparkSession, settings: Mapping[str, str]) -> None:
    fixed = []
    for name, value in settings.items():
        if session.conf.get(name, None) == value:
            continue
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
        else:
            fixed.append(name)
    if fixed:
        _log.warning(
            "this process has a Spark session already, and a session that runs cannot change %s; stop it first",
            ", ".join(fixed),
        )


def _start_session(master: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    java = check_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("headway").master(master)
    for name, value in {**_defaults(master, java), **settings}.items():
        builder = builder.config(name, value)
    with _quiet() as said, _deaf_gateway(), contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():  # in others, PySpark installs no handler
            # Spark's own would cancel all jobs at Ctrl-C, but a run must drain, on any engine.
            stack.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        if "PYSPARK_PYTHON" not in os.environ:  # the session keeps what it was started with
            os.environ["PYSPARK_PYTHON"] = launcher() if master.startswith("local") else sys.executable
            stack.callback(os.environ.pop, "PYSPARK_PYTHON")
        try:
            session = builder.getOrCreate()
        except Exception as error:
            text = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RunError(f"Spark cannot start on {master}: {text}{said()}") from error
    # If the JVM is killed, this PySpark server would print a traceback.
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None and not os.environ.get("HEADWAY_SPARK_LOG"):
        server.handle_error = lambda *request: None
    if not master.startswith("local"):
        session.sparkContext.addPyFile(package())
    return session


def _defaults(master: str, java: str) -> dict[str, str]:
    local = master.startswith("local")
    # Kernels do the work, and the JVM only carries blobs. On few cores its second compiler takes more time than it
    # gives back: a start and two short runs cost 26 s of processor time with it and 15 s without.
    few = local and (os.cpu_count() or 1) <= _FEW_CORES
    compiler = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1" if few else "-XX:+UseParallelGC"
    # A driver that is killed leaves shuffle files, working copies of states and native libraries behind.
    places = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} -Djava.io.tmpdir={_scratch()}"
    return {
        **({"spark.local.dir": _scratch()} if local else {}),
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.maxResultSize": "0",
        "spark.driver.extraJavaOptions": f"{places} {compiler} {map_archive(java)}",
        "spark.scheduler.mode": "FAIR",
        "spark.python.worker.reuse": "true",
        "spark.locality.wait": "0",
        "spark.shuffle.compress": "false",
        "spark.sql.adaptive.enabled": "false",
        **STREAMING,
    }


def launcher() -> str:
    """Return a program that runs this Python without Spark's archives on its path, or else plain Python.

    Spark puts an archive of PySpark first on a worker's path, and each process compiles what it imports from there
    again: a second of work per process, and every query has several. Locally, PySpark is also installed and compiled.
    """
    import pyspark

    home, path = os.environ.get("SPARK_HOME"), Path(_scratch(), "python")
    if home is not None and Path(home).resolve() != Path(pyspark.__file__).parent.resolve():
        return sys.executable  # another Spark, whose workers need its own PySpark
    if not path.exists():  # workers of a session may be reading it
        path.write_text(_LAUNCHER.format(shlex.quote(sys.executable)))
        path.chmod(0o700)
    return str(path) if os.access(path, os.X_OK) else sys.executable  # temporary files may not be executable


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Keep py4j, which connects Python to the JVM, from printing tracebacks: we report its failures in one line."""
    logger, root = logging.getLogger("py4j"), logging.getLogger()
    level = logger.level
    if not os.environ.get("HEADWAY_SPARK_LOG"):
        logger.setLevel(logging.CRITICAL + 1)
        root.addFilter(_is_not_py4j)  # some of its messages come from the root logger
    try:
        yield
    finally:
        logger.setLevel(level)
        root.removeFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


@contextlib.contextmanager
def _deaf_gateway() -> Iterator[None]:
    """Start the JVM so that it ignores SIGTERM and SIGHUP, as it already ignores Ctrl-C, so that a run can drain.

    A terminal signals the whole process group, systemd all processes of a service. If the JVM died first, the run could
    not drain. Processes started by the JVM ignore the signals, too. The JVM ends when its standard input is closed, and
    so with the driver, however that ends.
    """
    from pyspark import java_gateway

    module: Any = java_gateway
    made = module.Popen

    def start(command: list[str], preexec_fn: Callable[[], None] | None = None, **more: Any) -> Any:
        def prepare() -> None:
            if preexec_fn is not None:
                preexec_fn()
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)

        return made(command, preexec_fn=prepare, **more)

    module.Popen = start  # PySpark overrides any preexec_fn passed to it
    try:
        yield
    finally:
        module.Popen = made


@contextlib.contextmanager
def _quiet() -> Iterator[Callable[[], str]]:
    """Start the JVM with its output, and that of its Python workers, redirected to a file.

    Yields a function that returns the last line of that file. With HEADWAY_SPARK_LOG set, everything is shown.
    """
    if os.environ.get("HEADWAY_SPARK_LOG"):
        yield lambda: ""
        return
    path = Path(_scratch(), "spark.log")
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    with path.open("ab") as file:
        for number, _ in kept:
            os.dup2(file.fileno(), number)

    def last_words() -> str:
        lines = path.read_text(errors="replace").strip().splitlines()
        return f"; {lines[-1]}" if lines else ""

    try:
        yield last_words
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


@functools.cache
def _scratch() -> str:
    """Return a folder for leftovers of Spark and Headway; if this process is killed, the next run removes it."""
    folder = make_temporary()
    atexit.register(remove_temporary, folder)
    return folder


def jvm_alive(patience: float) -> bool:
    """Return whether the JVM that this process started still runs after `patience` seconds; True if there is none."""
    from pyspark import SparkContext

    process: Any = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return True
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    return process.poll() is None


def _forget() -> None:
    """Make PySpark forget a JVM that has ended, so that the next session starts another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext
    with contextlib.suppress(Exception):
        context._gateway.shutdown()
    context._gateway = context._jvm = context._active_spark_context = None
    kept: Any = SparkSession
    kept._instantiatedSession = None
    kept._activeSession = None


def check_java() -> str:
    """Return the version of the Java that Spark uses; raise a RunError with installation advice if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = f"install Java {_JAVA} (Debian: apt-get install openjdk-{_JAVA}-jre-headless), or use --engine local"
    if java is None or (home and not Path(java).exists()):
        raise RunError(f"the engine 'spark' needs Java {_JAVA}, and there is none; {advice}")
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(
            f"the engine 'spark' needs Java {_JAVA}, and '{java}' does not run: {error}; {advice}"
        ) from error
    found = version.split('"')[1] if '"' in version else ""
    number = found.split(".")[0]
    if number.isdecimal() and int(number) < _JAVA:
        raise RunError(f"the engine 'spark' needs Java {_JAVA}, and '{java}' is version {number}; {advice}")
    return found


def package() -> str:
    """Return this package as an archive that executors can import, including compiled modules where they exist."""
    root = Path(__file__).parents[3]
    path = Path(_scratch()) / "headway.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
            name = Path("headway") / file.relative_to(root)
            archive.write(file, name)
            compiled = Path(importlib.util.cache_from_source(str(file)))
            if file.suffix == ".py" and compiled.exists():
                archive.write(compiled, name.with_suffix(".pyc"))
    return str(path)


ARCHIVE_SETTING = "HEADWAY_SPARK_CLASSES"
"""Environment variable: a class archive to map instead of the environment's own; empty for none."""


# The archive of Spark's classes makes a JVM start twice as fast: most of Spark's start is spent on reading and
# verifying thousands of classes, and Java can store them in their in-memory form (class data sharing).
# `headway prepare` writes the archive from a short run; a session maps it if it exists. The JVM checks that it matches
# its own version and the jars, and otherwise ignores it.


def class_archive(java: str) -> Path:
    """Return where this Python environment keeps the archive for a version of Java."""
    return Path(sys.prefix) / "var" / "headway" / f"spark-{version('pyspark')}-java-{java}.jsa"


def map_archive(java: str) -> str:
    """Return the options with which a JVM of this version maps the archive, or an empty string if there is none."""
    chosen = os.environ.get(ARCHIVE_SETTING)
    archive = class_archive(java) if chosen is None else Path(chosen) if chosen else None
    # A quote would end the option early; without the archive, only the start is slower.
    if archive is None or '"' in str(archive) or not archive.is_file():
        return ""
    return f'"-XX:SharedArchiveFile={archive}"'


def record_archive(archive: Path) -> dict[str, str]:
    """Return the environment of a run whose JVM writes an archive when it ends.

    The JVM shares the run's output, so reading that to its end ensures that the archive is complete.
    """
    if '"' in str(archive):
        raise RunError(f"the archive cannot be written to '{archive}': there is a quote in its name")
    return {ARCHIVE_SETTING: "", "SPARK_SUBMIT_OPTS": f'-XX:ArchiveClassesAtExit="{archive}"', "HEADWAY_SPARK_LOG": "1"}


def ship_functions(functions: Functions) -> None:
    """Make Spark send the code of users' own modules, not just their names."""
    from pyspark import cloudpickle

    for module in own_modules(functions):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def own_modules(functions: Functions) -> list[ModuleType]:
    """Return the modules of users' functions, except installed ones."""
    bodies: list[object] = [one.function for one in functions.scalars.values()]
    for aggregate in functions.aggregates.values():
        bodies += [aggregate.init, aggregate.incr, aggregate.final, aggregate.function]
    found: dict[str, ModuleType] = {}
    for body in bodies:
        name = getattr(body, "__module__", None) or type(getattr(body, "__self__", None)).__module__
        module = sys.modules.get(name)
        if module is not None and name != "__main__" and _is_own(module):
            found[module.__name__] = module
    return list(found.values())


def _is_own(module: ModuleType) -> bool:
    """Return whether a module is neither part of this package nor an installed one."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    installed = "site-packages" in path.parts or "dist-packages" in path.parts
    homes = [Path(sys.base_prefix).resolve() / "lib", Path(__file__).resolve().parents[3]]
    return not installed and not any(path.is_relative_to(home) for home in homes)
