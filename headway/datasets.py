"""Stored data sets: what a dangling point names, read as a table; and all static tables of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.errors import NetworkError, choices, within
from headway.network import FrozenMap, Network, Point
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust
from headway.tables import load_table, table_schema

DataLoader = Callable[[FrozenMap, str, Path | None, Trust], pa.Table]
"""Gets `data` as written, a text that begins its messages, the folder of relative paths, and what is allowed."""
_loaders: dict[str, DataLoader] = {}
_FILES = ("csv", "jsonl", "parquet")


def register_data_loader(kind: str, loader: DataLoader) -> None:
    """Register how stored data of a kind such as ``sql`` is read; the loader asks `trust` before it opens anything.

    A stranger's file may name the kind only if the operator allows it as a format.
    """
    _loaders[kind] = loader


def load_data(
    point: Point, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> pa.Table:
    """Return a point's stored data as a table with Headway's types: one of `tables` by its name, or what it names.

    Raises a NetworkError that names the point, also for what `trust` does not allow.
    """
    if tables and point.name in tables:
        return load_table(point.name, tables)
    data, who = point.data, f"point '{point.name}': data"
    with within(who, NetworkError):
        if isinstance(data, str):
            return load_table(data, None, folder, trust)
        assert data is not None
        kind = next(iter(data.keys() & {*_FILES, "spark", "sql", *_loaders}), "")
        if kind in _FILES:
            return load_table(data[kind], None, folder, trust, kind)
        if kind == "spark":
            return load_table(data[kind], None, folder, trust)
        if not trust.own:
            trust.check_format(kind, (), kind, NetworkError, kind="connector")
        if kind not in _loaders:
            raise NetworkError(f"nothing here reads {kind}; choices: {choices([*_FILES, 'spark', *_loaders])}")
    return _loaders[kind](data, who, folder, trust)


def data_schema(
    point: Point, tables: Mapping[str, Any] | None = None, folder: Path | None = None, trust: Trust = OWN
) -> Schema:
    """Return the schema of a point's stored data; `tables` may hold schemas instead of tables."""
    if tables and point.name in tables:
        return table_schema(point.name, tables)
    return Schema.from_arrow(load_data(point, None, folder, trust).schema)


def load_static(network: Network, ref: str, tables: Mapping[str, Any] | None = None) -> pa.Table:
    """Return a static table of a network by its ref, which may be the name of a dangling point."""
    point = stored_point(network, ref)
    if point is None:
        return load_table(ref, tables, network.folder, network.trust)
    return load_data(point, tables, network.folder, network.trust)


def static_schema(network: Network, ref: str, tables: Mapping[str, Any] | None, trust: Trust) -> Schema:
    """Return the schema of a static table of a network by its ref; `tables` may hold schemas."""
    point = stored_point(network, ref)
    if point is None:
        return table_schema(ref, tables, network.folder, trust)
    return data_schema(point, tables, network.folder, trust)


def stored_point(network: Network, name: str) -> Point | None:
    """Return the dangling point of a name, if there is one."""
    return next((point for point in network.points if point.name == name and point.data is not None), None)
