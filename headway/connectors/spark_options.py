"""The Spark formats and options that a network file may name, because they are known not to load code.

Spark passes every option of a file format on to Hadoop's configuration, and some sources load classes that options
name. Options are therefore listed one by one; the operator can allow more (`--allow-format`, `--allow-option`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headway.connectors.protocol import Request
from headway.errors import HeadwayError
from headway.network.trust import Trust
from headway.storage.filesystems import is_uri


def words(text: str) -> tuple[str, ...]:
    """Split text into unique words, in lower case, sorted."""
    return tuple(sorted({word.lower() for word in text.split()}))


@dataclass(frozen=True, slots=True)
class Format:
    """A format's options in lower case: allowed to everyone, only in one's own files, and those that name hosts."""

    options: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: str, own: str = "", hosts: str = "") -> Format:
        """Parse lists of words; `hosts` are allowed to everyone, but their values are checked."""
        return cls(words(f"{options} {hosts}"), words(own), words(hosts))


_FILES = (
    "pathGlobFilter recursiveFileLookup modifiedBefore modifiedAfter ignoreCorruptFiles ignoreMissingFiles "
    "maxFilesPerTrigger maxBytesPerTrigger maxCachedFiles discardCachedInputRatio latestFirst maxFileAge fileNameOnly "
    "compression maxRecordsPerFile"
)
_MOVES = "cleanSource sourceArchiveDir"
"""Options that delete or move input files."""
_TEXTS = (
    "encoding charset locale timeZone dateFormat timestampFormat timestampNTZFormat mode columnNameOfCorruptRecord "
    "multiLine lineSep samplingRatio nullValue enableDateTimeParsingFallback inferSchema mergeSchema"
)
FORMATS: Mapping[str, Format] = {
    "avro": Format.of(
        f"{_FILES} avroSchema ignoreExtension mode datetimeRebaseMode positionalFieldMatching recordName "
        "recordNamespace recursiveFieldMaxDepth enableStableIdentifiersForUnionType",
        f"{_MOVES} avroSchemaUrl",
    ),
    "csv": Format.of(
        f"{_FILES} {_TEXTS} sep delimiter quote escape comment header preferDate enforceSchema nanValue positiveInf "
        "ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace negativeInf maxColumns maxCharsPerColumn emptyValue "
        "charToEscapeQuoteEscaping unescapedQuoteHandling quoteAll escapeQuotes extension",
        _MOVES,
    ),
    "delta": Format.of(
        "maxFilesPerTrigger maxBytesPerTrigger ignoreDeletes ignoreChanges skipChangeCommits startingVersion "
        "startingTimestamp readChangeFeed failOnDataLoss excludeRegex mergeSchema overwriteSchema userMetadata "
        "partitionOverwriteMode dataChange maxRecordsPerFile optimizeWrite versionAsOf timestampAsOf"
    ),
    "iceberg": Format.of(
        "stream-from-timestamp streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots "
        "streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch fanout-enabled check-nullability "
        "check-ordering target-file-size-bytes compression-level"
    ),
    "jdbc": Format.of(
        "dbtable query partitionColumn lowerBound upperBound numPartitions queryTimeout fetchsize batchsize truncate "
        "isolationLevel cascadeTruncate customSchema pushDownPredicate pushDownAggregate pushDownLimit pushDownOffset "
        "pushDownTableSample preferTimestampNTZ",
        "user password createTableColumnTypes",
        "url",
    ),
    "json": Format.of(
        f"{_FILES} {_TEXTS} primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes "
        "allowNumericLeadingZeros allowBackslashEscapingAnyCharacter allowUnquotedControlChars dropFieldIfAllNull "
        "allowNonNumericNumbers ignoreNullFields writeNonAsciiCharacterAsCodePoint",
        _MOVES,
    ),
    "kafka": Format.of(
        "subscribe subscribePattern assign topic startingOffsets endingOffsets startingTimestamp endingTimestamp "
        "startingOffsetsByTimestamp endingOffsetsByTimestamp startingOffsetsByTimestampStrategy failOnDataLoss "
        "kafkaConsumer.pollTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs maxOffsetsPerTrigger "
        "minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition groupIdPrefix includeHeaders "
        "kafka.group.id kafka.client.id kafka.security.protocol kafka.sasl.mechanism kafka.fetch.max.bytes "
        "kafka.max.partition.fetch.bytes kafka.fetch.min.bytes kafka.fetch.max.wait.ms kafka.request.timeout.ms "
        "kafka.session.timeout.ms kafka.max.poll.records kafka.isolation.level kafka.acks kafka.compression.type "
        "kafka.batch.size kafka.linger.ms kafka.max.request.size kafka.delivery.timeout.ms",
        "kafka.ssl.truststore.location kafka.ssl.truststore.password kafka.ssl.truststore.type "
        "kafka.ssl.keystore.location kafka.ssl.keystore.password kafka.ssl.keystore.type kafka.ssl.key.password "
        "kafka.ssl.endpoint.identification.algorithm kafka.sasl.kerberos.service.name",
        "kafka.bootstrap.servers",
    ),
    "kinesis": Format.of(
        "streamName region initialPosition maxFetchRecordsPerShard maxFetchTimePerShardSec", "endpointUrl"
    ),
    "noop": Format(),
    "orc": Format.of(f"{_FILES} mergeSchema", _MOVES),
    "parquet": Format.of(f"{_FILES} mergeSchema datetimeRebaseMode int96RebaseMode", _MOVES),
    "rate": Format.of("rowsPerSecond rampUpTime numPartitions"),
    "rate-micro-batch": Format.of("rowsPerBatch numPartitions startTimestamp advanceMillisPerBatch"),
    "socket": Format.of("port includeTimestamp", hosts="host"),
    "text": Format.of(f"{_FILES} wholetext lineSep encoding", _MOVES),
    "xml": Format.of(
        f"{_FILES} {_TEXTS} rowTag rootTag arrayElementName declaration attributePrefix valueTag excludeAttribute "
        "treatEmptyValuesAsNulls ignoreSurroundingSpaces ignoreNamespace wildcardColName validateName",
        f"{_MOVES} rowValidationXSDPath",
    ),
}
_CLASSES = ("compression", "codec", "encoding", "charset")
"""Options whose value, unless it is a short name, could be the name of a class to load."""
_SHORT = re.compile(r"[\w-]{0,40}")
_JDBC = re.compile(r"jdbc:[a-z0-9]+://([A-Za-z0-9._-]+(?::[0-9]+)?)/[\w-]*")
"""A database address without settings; some drivers' settings load classes or read files."""


def read_text(given: Mapping[str, object], key: str, request: Request) -> str | None:
    """Return a setting that must be text, or None if it is not given."""
    value = given.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise request.error(f"{request.who}: spark: {key} is text, not {value!r}")
    return value


def read_options(given: object, request: Request) -> dict[str, str]:
    """Return options as the text that Spark expects; raises the request's error for values that are not plain."""
    who = f"{request.who}: spark"
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise request.error(f"{who}: options is a mapping, such as {{maxFilesPerTrigger: 10}}, not {given!r}")
    for key, value in given.items():
        if not isinstance(value, str | int | float | bool):
            raise request.error(f"{who}: option '{key}' is text, a number, true or false, not {value!r}")
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


def allowed_path(path: str | None, request: Request) -> str | None:
    """Return a path or URI, with relative paths resolved against the request's base, if its trust allows it."""
    if path is None:
        return None
    who = f"{request.who}: spark: path"
    request.trust.check_pattern(path, who, request.error)
    request.trust.check_path(path, request.base, who, request.error, write=request.part == "sink")
    if is_uri(path) or path.startswith("/") or request.base is None:
        return path
    return str((request.base / path).absolute())


def check_settings(format_: str, options: Mapping[str, str], trust: Trust, who: str, error: type[HeadwayError]) -> None:
    """Raise `error` unless a file may use this format with these options; `who` is the prefix of the message."""
    trust.check_format(format_, tuple(FORMATS), f"{who}: format", error)
    known = FORMATS.get(format_.lower(), Format())
    for name, value in options.items():
        where = f"{who}: options"
        trust.check_option(name, format_, known.options, known.own, where, error)
        lowered = name.lower()
        if lowered in _CLASSES and not _SHORT.fullmatch(value):
            raise error(f"{where}: option '{name}' is a short name, such as gzip or UTF-8, not '{value[:60]}'")
        if lowered in known.hosts:
            _check_host(lowered, value, trust, f"{where}: {name}", error)


def _check_host(option: str, value: str, trust: Trust, who: str, error: type[HeadwayError]) -> None:
    if option != "url":
        trust.check_hosts(value, who, error)
    elif not trust.own:
        found = _JDBC.fullmatch(value)
        if found is None:
            raise error(f"{who}: from a stranger this must be jdbc:KIND://HOST:PORT/NAME, without settings")
        trust.check_hosts(found[1], who, error)
