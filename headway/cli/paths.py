"""The static tables that a command line gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headway.connectors import source_suffixes
from headway.engines.claims import table_refs
from headway.errors import NetworkError, choices, unknown
from headway.network import Network
from headway.tables import load_table


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
