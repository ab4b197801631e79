"""Addresses such as ``kafka://host/topic``, which are no files: what to write instead."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/?/")
_DOCS = "see docs/connectors.md"
_FILES = ("s3", "s3a", "s3n", "gs", "hdfs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "dbfs")
_OTHERS = ("amqp", "amqps", "mqtt", "mqtts", "nats", "pulsar", "redis", "rediss", "ws", "wss", "tcp", "udp", "zmq")


def scheme_hint(what: object, sink: bool) -> str:
    """Return what to write instead of an address, or an empty string if it is none; a bare name is one, too."""
    text = str(what)
    found = _SCHEME.match(text)
    scheme = (found[1] if found else text).lower()
    side = "sink" if sink else "source"
    if scheme == "kafka":
        topic = "topic: TOPIC" if sink else "subscribe: TOPIC"
        options = f'options: {{kafka.bootstrap.servers: "HOST:9092", {topic}}}'
        return f"Kafka is reached through Spark: {side}: {{spark: {{format: kafka, {options}}}}}; {_DOCS}"
    if scheme in _FILES and found:
        reached = f"{side}: {{spark: {{format: parquet, path: '{text[:200]}'}}}}"
        return f"such files are reached through Spark: {reached}; {_DOCS}"
    if scheme == "jdbc" or text.lower().startswith("jdbc:"):
        written = "sink: {spark: {format: jdbc, options: {url: URL, dbtable: TABLE}}}"
        read = "a database does not stream: read it as a static table of a Spark session, or export it to a file"
        return f"{written if sink else read}; {_DOCS}"
    if scheme in ("http", "https", "ftp", "ftps"):
        pipe = (
            "pipe it: headway run ... --output NAME=- | curl"
            if sink
            else "fetch it: curl URL | headway run ... --input NAME=-"
        )
        return f"nothing here speaks {scheme.upper()}; {pipe}; {_DOCS}"
    if scheme == "file" and found:
        return "write the path without file://"
    if scheme in _OTHERS:
        what_to = "--output NAME=- gives JSON lines to pipe on" if sink else "pipe JSON lines in with --input NAME=-"
        return f"there is no connector for it; {what_to}, or write your own {side}; {_DOCS}"
    return (
        f"it is an address, not a file; Spark's formats are reached by {{spark: {{format: ...}}}}; {_DOCS}"
        if found
        else ""
    )
