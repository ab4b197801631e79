"""What went wrong on Spark, in plain words: failed queries, lost processes, executors that do not come."""

from __future__ import annotations

import re

_RAISED = re.compile(r"^(?:headway\.\S+\.|pyspark\.\S+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_LOST = (
    "failed to connect back",  # Spark gives its Python processes ten seconds to start
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
)
"""What stands in Spark's stack when it fails to read what its checkpoint holds, and in no other one."""
_OTHERWISE = ("No space left", "UNRELEASED_THREAD_ERROR")
"""What fails there too, and is no damage: a full disk, and a task that still holds the state."""
_FILE = re.compile(r"(?:file:)?(/[^\s'\",;()\[\]]*/checkpoints/[^\s'\",;()\[\]]+)")


def is_damage(error: str) -> bool:
    """Return whether a query failed because Spark cannot read what its checkpoint holds."""
    read = any(sign in error for sign in _UNREADABLE) and not any(sign in error for sign in _OTHERWISE)
    return read and not _own(error)


def is_loss(error: str) -> bool:
    """Return whether a query failed because a process of it was lost, and not because of what the process did."""
    return any(sign in error for sign in _LOST) and not _raised(error) and not is_damage(error)


def _own(error: str) -> bool:
    """Return whether a message of ours is in it."""
    return any(match[1] in _OURS for match in _raised(error))


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


def no_executors(master: str) -> str:
    """Return what to tell somebody whose cluster runs nothing."""
    return (
        f"'{master}' has not started any executor for this run yet; it waits for free cores and memory: are workers "
        "running, and is something else using them? (--conf spark.cores.max=N and spark.executor.memory ask for less)"
    )
