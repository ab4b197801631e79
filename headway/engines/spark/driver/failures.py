"""Failures of streaming queries: what they mean, and how they are told in one line."""

from __future__ import annotations

import re

from headway.storage.checked import RESTORE

_RAISED = re.compile(r"^(?:headway\.\S+\.|pyspark\.\S+\.)?(\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
STOPPED = "the query has stopped"
"""The reason for a query that neither runs nor has failed."""
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
"""Parts of Spark's stack trace that only occur when it cannot read its checkpoint.

The last two occur when an offset file is missing but its checksum exists; another user of the state is ruled out, since
a run locks it.
"""
_OTHERWISE = ("No space left", "UNRELEASED_THREAD_ERROR")
"""Failures in the same places without damage: a full disk, and a task that still holds the state."""
_GONE = re.compile(r"File \S*/checkpoints/\S+ does not exist")
_FILE = re.compile(r"(?:file:)?(/[^\s'\",;()\[\]]*/checkpoints/[^\s'\",;()\[\]]+)")


def is_damage(error: str) -> bool:
    """Return whether a query failed because Spark cannot read its checkpoint."""
    read = any(sign in error for sign in _UNREADABLE) or _GONE.search(error) is not None
    ours = any(match[1] in _OURS for match in _raised(error))
    return read and not any(sign in error for sign in _OTHERWISE) and not ours


def is_loss(error: str) -> bool:
    """Return whether a query failed because one of its processes was lost, rather than by an error in it."""
    return any(sign in error for sign in _LOST) and not _raised(error) and not is_damage(error)


def is_slow(error: str) -> bool:
    """Return whether a query failed because its Python process did not start within Spark's ten seconds.

    The limit is a constant in Spark. A busy machine may exceed it without any other fault.
    """
    return any(sign in error for sign in _SLOW) and not _raised(error)


def _raised(error: str) -> list[re.Match[str]]:
    """Return the exceptions raised by Python code, from Spark's description of a failure."""
    return [match for match in _RAISED.finditer(error) if "SparkException" not in match[1]]


def describe_failure(unit: str, error: str) -> str:
    """Return one line for a query's failure: the last exception in our own words, without Spark's stack."""
    if is_damage(error):
        # The longest path that Spark names is the most specific.
        named = max((match[1].rstrip(".:") for match in _FILE.finditer(error)), key=len, default="")
        where = f"'{named}', or a file in it," if named else "a file under 'checkpoints' in the state"
        return f"'{unit}' cannot go on: {where} is missing or damaged; {RESTORE}"
    found = _raised(error)
    kind, text = (found[-1][1], found[-1][2].strip()) if found else ("", (error.strip() or "no reason").splitlines()[0])
    return text if kind in _OURS else f"'{unit}' failed on Spark: {f'{kind}: ' if kind else ''}{text}"


def describe_stopped(unit: str) -> str:
    """Return one line for a query that was stopped from outside the run."""
    return (
        f"'{unit}' was stopped on Spark from outside of the run: by stop() of its streaming query or of the Spark "
        "session; hw.Control().stop() ends a run in order"
    )


def describe_gone(state: str | None) -> str:
    """Return one line for a JVM that has ended."""
    goes_on = "the same command goes on from there" if state else "with --state, a run can go on after that"
    return (
        "Spark's JVM has ended amid the run: was it killed, or short of memory (--conf spark.driver.memory=4g)? "
        f"Nothing was written to files; {goes_on}"
    )
