"""Which files a run reads and writes: no file twice, and nothing written over what is read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from headway.errors import HeadwayError, InputError, NetworkError, OutputError
from headway.network import Network, Table, thaw
from headway.paths import unusable


class Use(NamedTuple):
    """A file and who uses it, as messages have it."""

    who: str
    path: Path


def is_standard(what: object) -> bool:
    """Whether a destination or an input is standard output or input."""
    if isinstance(what, Mapping) and len(what) == 1:
        what = next(iter(what.values()))
    return isinstance(what, str) and what == "-"  # an input may be an array, which compares by element


def file_of(what: object, base: Path | None = None) -> Path | None:
    """Return the file that a connector names (a path, ``{csv: path}``, ``{replay: {file: path}}``), or None."""
    if isinstance(what, Mapping) and len(what) == 1:
        what = next(iter(what.values()))
        if isinstance(what, Mapping):
            what = what.get("file")
    if not isinstance(what, str | Path) or str(what) in ("", "-"):
        return None
    return Path(what) if base is None else base / what


def check_files(
    network: Network,
    inputs: Mapping[str, object],
    writes: Mapping[str, object],
    file: Path | None = None,
    tables: Collection[str] = (),
) -> None:
    """Raise before anything is opened if a file that is written is read, or written twice.

    `inputs` are what the run gives by source, `writes` what is written beside the network's own sinks, by who writes
    it: ``output 'x'`` and so on. `file` is the network's own, `tables` names the static tables that are read already.
    """
    reads = [] if file is None else [Use("the network file", file)]
    standard = []
    for source in network.sources:
        given = source.name in inputs
        what = inputs[source.name] if given else thaw(source.connector)
        path = file_of(what, None if given else network.folder)
        if path is not None:
            reads.append(_usable(Use(f"source '{source.name}'", path), InputError))
        elif is_standard(what):
            standard.append(source.name)
    if len(standard) > 1:
        raise InputError(f"only one source can read standard input, not {' and '.join(map(repr, standard))}")
    reads += [
        _usable(Use(f"table '{ref}'", (network.folder or Path()) / ref), NetworkError)
        for ref in table_refs(network)
        if Path(ref).suffix and ref not in tables
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
