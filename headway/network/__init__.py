"""Networks as users describe them: schemas, QoS graphs, and what a file may name. Frozen data, no behaviour."""

from headway.network.network import (
    Box,
    FrozenMap,
    Network,
    Output,
    Source,
    Table,
    arc_name,
    check_name,
    freeze,
    is_object,
    thaw,
)

__all__ = [
    "Box",
    "FrozenMap",
    "Network",
    "Output",
    "Source",
    "Table",
    "arc_name",
    "check_name",
    "freeze",
    "is_object",
    "thaw",
]
