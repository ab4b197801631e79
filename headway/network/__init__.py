"""What a user describes: networks, their schemas and QoS graphs, and what a file may name. Frozen and inert."""

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
