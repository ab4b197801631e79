"""What a run reads and writes: no file twice, and nothing written over what is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from headway.connectors import source_suffixes
from headway.errors import HeadwayError, InputError, NetworkError, OutputError, choices, unknown
from headway.network import Network, Table, thaw
from headway.paths import unusable
from headway.tables import load_table


class Use(NamedTuple):
    """A file and who uses it, as messages have it."""

    who: str
    path: Path


def is_standard(what: object) -> bool:
    """Whether a destination or an input is standard output or input."""
    return what == "-" or (isinstance(what, Mapping) and list(what.values()) == ["-"])


def file_of(what: object, base: Path | None = None) -> Path | None:
    """Return the file that a connector names (a path, ``{csv: path}``, ``{replay: {file: path}}``), or None."""
    if isinstance(what, Mapping) and len(what) == 1:
        what = next(iter(what.values()))
        if isinstance(what, Mapping):
            what = what.get("file")
    if not isinstance(what, str | Path) or str(what) in ("", "-"):
        return None
    return Path(what) if base is None else base / what


def check_files(network: Network, file: Path, inputs: Mapping[str, str], writes: Mapping[str, object]) -> None:
    """Raise before anything is opened if a file that is written is read, or written twice.

    `writes` are the files to write beside the network's own sinks, by who writes them: ``output 'x'`` and so on.
    """
    reads = [Use("the network file", file)]
    standard = []
    for source in network.sources:
        given = inputs.get(source.name)
        what = thaw(source.connector) if given is None else given
        path = file_of(what, network.folder if given is None else None)
        if path is not None:
            reads.append(_usable(Use(f"source '{source.name}'", path), InputError))
        elif is_standard(what):
            standard.append(source.name)
    if len(standard) > 1:
        raise InputError(f"only one source can read standard input, not {' and '.join(map(repr, standard))}")
    reads += [
        _usable(Use(f"table '{ref}'", (network.folder or Path()) / ref), NetworkError)
        for ref in table_refs(network)
        if Path(ref).suffix
    ]
    written: list[Use] = []
    sinks = {f"output '{output.name}'": thaw(output.sink) for output in network.outputs}
    for who, what in {**sinks, **writes}.items():
        path = file_of(what, None if who in writes else network.folder)
        if path is not None:
            use = _usable(Use(who, path), OutputError)
            _check_use(use, reads, "reads")
            _check_use(use, written, "writes")
            written.append(use)


def table_refs(network: Network) -> tuple[str, ...]:
    """Return the static tables that a network names."""
    refs = [item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table)]
    return tuple(dict.fromkeys(refs))


def load_tables(network: Network, given: Mapping[str, str]) -> dict[str, pa.Table]:
    """Return the static tables that the command line gives; paths count from the current folder."""
    refs = table_refs(network)
    tables: dict[str, Any] = {}
    for name, path in given.items():
        if name not in refs:
            raise NetworkError(f"--table: {unknown('table', name, refs)}")
        if Path(path).suffix.lower() not in source_suffixes():
            raise NetworkError(f"--table: table '{name}': '{path}' ends in none of {choices(source_suffixes())}")
        tables[name] = load_table(path)
    return tables


def _usable(use: Use, error: type[HeadwayError]) -> Use:
    wrong = unusable(use.path)
    if wrong:
        raise error(f"{use.who}: '{use.path}' is no path: {wrong}")
    return use


def _check_use(use: Use, others: list[Use], verb: str) -> None:
    for other in others:
        if _same(use.path, other.path):
            raise OutputError(f"{use.who} would write to '{use.path}', which {other.who} {verb}; give it another path")


def _same(one: Path, other: Path) -> bool:
    try:
        if one.exists() and other.exists():
            return one.samefile(other)
    except (OSError, ValueError):
        return False  # whoever opens it says what is wrong
    return os.path.realpath(one) == os.path.realpath(other)
