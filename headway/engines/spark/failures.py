"""What went wrong on Spark, in plain words: failed queries, lost processes, executors that do not come."""

from __future__ import annotations

import re

_RAISED = re.compile(r"^(?:headway\.\S+\.|pyspark\.\S+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
STOPPED = "the query has stopped"
"""What is known of a query that neither runs nor has failed."""
_SLOW = ("failed to connect back", "Python worker to connect back")
_LOST = (
    *_SLOW,
    "Python worker exited unexpectedly",
    "Python worker process terminated",
    "java.io.EOFException",
    "Connection reset",
    "Broken pipe",
)
_OURS = ("RunError", "InputError", "OutputError", "NetworkError")
_UNREADABLE = (
    "ChecksumException",
    "CANNOT_LOAD_STATE_STORE",
    "MALFORMED_LOG_FILE",
    "ChangelogReader",
    "RocksDB.load",
    "RocksDB.replayChangelog",
    "RocksDBFileManager",
    "RocksDBException",
    "HDFSMetadataLog",
    "OffsetSeqLog",
    "CommitLog",
    "StreamMetadata",
    "OperatorStateMetadata",
    "StateSchemaCompatibilityChecker",
    "STDS_FAILED_TO_READ",
    "BATCH_METADATA_NOT_FOUND",
    "com.fasterxml.jackson",
    "org.json4s",
    "Unexpected end-of-input",
    "Unexpected character",
    "Illegal unquoted character",
    "Unrecognized token",
    "Multiple streaming queries are concurrently using",
    "CONCURRENT_STREAM_LOG_UPDATE",
)
"""What stands in Spark's stack when it fails to read what its checkpoint holds, and in no other one.

The last two are what it makes of an offset file that is gone while its checksum is there: that nobody else uses a state
is certain, since a run locks it.
"""
_OTHERWISE = ("No space left", "UNRELEASED_THREAD_ERROR")
"""What fails there too, and is no damage: a full disk, and a task that still holds the state."""
_GONE = re.compile(r"File \S*/checkpoints/\S+ does not exist")
_FILE = re.compile(r"(?:file:)?(/[^\s'\",;()\[\]]*/checkpoints/[^\s'\",;()\[\]]+)")


def is_damage(error: str) -> bool:
    """Return whether a query failed because Spark cannot read what its checkpoint holds."""
    read = any(sign in error for sign in _UNREADABLE) or _GONE.search(error) is not None
    return read and not any(sign in error for sign in _OTHERWISE) and not _own(error)


def is_loss(error: str) -> bool:
    """Return whether a query failed because a process of it was lost, and not because of what the process did."""
    return any(sign in error for sign in _LOST) and not _raised(error) and not is_damage(error)


def _own(error: str) -> bool:
    """Return whether a message of ours is in it."""
    return any(match[1] in _OURS for match in _raised(error))


def is_slow(error: str) -> bool:
    """Return whether a query failed because its Python process did not start within the ten seconds of Spark's.

    They are a constant in Spark. On a busy machine they are not much, and nothing is wrong but that.
    """
    return any(sign in error for sign in _SLOW) and not _raised(error)


def _raised(error: str) -> list[re.Match[str]]:
    """Return what Python code raised, in Spark's words for a failure."""
    return [match for match in _RAISED.finditer(error) if "SparkException" not in match[1]]


def describe_failure(unit: str, error: str) -> str:
    """Return one line for a query's failure: what was raised last in our own words, not Spark's stack."""
    if is_damage(error):
        return _describe_damage(unit, error)
    found = _raised(error)
    kind, text = (found[-1][1], found[-1][2].strip()) if found else ("", (error.strip() or "no reason").splitlines()[0])
    return text if kind in _OURS else f"'{unit}' failed on Spark: {f'{kind}: ' if kind else ''}{text}"


def _describe_damage(unit: str, error: str) -> str:
    """Return one line for a checkpoint that Spark cannot read: the longest path in it that Spark names."""
    named = max((match[1].rstrip(".:") for match in _FILE.finditer(error)), key=len, default="")
    where = f"'{named}', or a file in it," if named else "a file under 'checkpoints' in the state"
    return f"'{unit}' cannot go on: {where} is missing or damaged; restore it, or give another --state"


def describe_losses(unit: str, count: int) -> str:
    """Return one line for a query that loses processes again and again."""
    return (
        f"'{unit}' failed on Spark: a Python process of it was lost {count} times in the same micro-batch; was it "
        "killed, for want of memory, or does a function of yours end it? (HEADWAY_SPARK_LOG=warn shows what Spark says)"
    )


def describe_slow(unit: str, seconds: float) -> str:
    """Return one line for a query whose Python process does not start in time, again and again."""
    return (
        f"'{unit}' could not start on Spark: its Python process was not up within Spark's ten seconds, tried again and "
        f"again for {seconds:.0f} s; is the machine busy with something else? (--units one starts fewer processes)"
    )


def describe_stopped(unit: str) -> str:
    """Return one line for a query that somebody else has stopped."""
    return (
        f"'{unit}' was stopped on Spark from outside of the run: by stop() of its streaming query or of the Spark "
        "session; hw.Control().stop() ends a run in order"
    )


def describe_gone(state: str | None) -> str:
    """Return one line for a JVM that is no more."""
    goes_on = "the same command goes on from there" if state else "with --state, a run can go on after that"
    return (
        "Spark's JVM has ended amid the run: was it killed, or short of memory (--conf spark.driver.memory=4g)? "
        f"Nothing was written to files; {goes_on}"
    )


def no_executors(master: str) -> str:
    """Return what to tell somebody whose cluster runs nothing."""
    return (
        f"'{master}' has not started any executor for this run yet; it waits for free cores and memory: are workers "
        "running, and is something else using them? (--conf spark.cores.max=N and spark.executor.memory ask for less)"
    )
