"""The static tables of a network, stored data sets of points included: given by the run, or read once and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from headway.network import FrozenMap, Network, Point, Table
from headway.network.schema import Schema
from headway.network.trust import OWN, Trust
from headway.tables.datasets import DataSet, data_schema, data_table, read_data
from headway.tables.loading import load_table, table_schema


class _Place(NamedTuple):
    """What a static table is read from."""

    ref: str
    data: FrozenMap | str | None
    folder: Path | None


_NOTHING: Mapping[_Place, pa.Table | Schema] = MappingProxyType({})


class Statics(Mapping[str, Any]):
    """The static tables that a run is given, by name, and what was read of others, which stays as it was read. Frozen.

    As a mapping it has only what the run is given. `load_static` and `static_schema` know the rest.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given = dict(given or {})
        self._read = _NOTHING

    @staticmethod
    def of_run(tables: Mapping[str, Any] | None) -> Statics:
        """Return a run's static tables; nothing was read of those that are only given."""
        return tables if isinstance(tables, Statics) else Statics(tables)

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def having(self, network: Network, read: Mapping[str, pa.Table | Schema]) -> Statics:
        """Return them with what was read of a network's static tables by ref, or of streamed data only the schema."""
        return self._with({**self._read, **{_place(network, ref): one for ref, one in read.items()}})

    def again(self, points: Collection[str]) -> Statics:
        """Return them without what was read of some points."""
        return self._with({place: one for place, one in self._read.items() if place.ref not in points})

    def of(self, network: Network) -> Statics:
        """Return them without what was read of tables that a network has not: nobody would read them again."""
        refs = [item.ref for box in network.boxes for item in box.inputs if isinstance(item, Table)]
        refs += [point.name for point in network.points if point.data is not None]
        places = {_place(network, ref) for ref in refs}
        return self._with({place: one for place, one in self._read.items() if place in places})

    def read(self, network: Network, ref: str) -> pa.Table | Schema | None:
        """Return what was read of a network's static table, if anything was."""
        return self._read.get(_place(network, ref))

    def _with(self, read: Mapping[_Place, pa.Table | Schema]) -> Statics:
        made = Statics(self._given)
        made._read = MappingProxyType(dict(read))
        return made


def load_static(network: Network, table: Table, tables: Mapping[str, Any] | None = None) -> pa.Table:
    """Return a static table of a network: as it was read before, one of `tables` by name, or what it names."""
    found = tables.read(network, table.ref) if isinstance(tables, Statics) else None
    if isinstance(found, pa.Table):
        return found
    data = _stored(network, table, tables, network.trust)
    return load_table(table, tables, network.folder, network.trust) if data is None else data_table(data)


def static_schema(network: Network, table: Table, tables: Mapping[str, Any] | None, trust: Trust) -> Schema:
    """Return the schema of a static table of a network, as far as `trust` allows; `tables` may hold schemas."""
    found = tables.read(network, table.ref) if isinstance(tables, Statics) else None
    if found is not None:
        return found if isinstance(found, Schema) else Schema.from_arrow(found.schema)
    data = _stored(network, table, tables, trust)
    return table_schema(table, tables, network.folder, trust) if data is None else data_schema(data)


def point_data(point: Point, folder: Path | None = None, trust: Trust = OWN) -> DataSet:
    """Return the stored data set of a dangling point."""
    return read_data(point.data, f"point '{point.name}': data", folder, trust)


def _stored(network: Network, table: Table, tables: Mapping[str, Any] | None, trust: Trust) -> DataSet | None:
    """Return the data set of a point that a table names, unless the run gives a table in its place."""
    point = network.stored(table.ref)
    if point is None or table.ref in (tables or {}):
        return None
    return point_data(point, network.folder, trust)


def _place(network: Network, ref: str) -> _Place:
    point = network.stored(ref)
    return _Place(ref, None if point is None else point.data, network.folder)
