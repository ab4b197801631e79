"""A naive reference of SQuAl: a tuple at a time, in plain Python, from the semantics alone."""

from tests.reference.aggregate import Aggregate
from tests.reference.bsort import BSort
from tests.reference.filter import Filter
from tests.reference.graph import Arrival, Graph, Node, Tick, in_turn, run_reference
from tests.reference.join import Join, TableJoin, side_by_side
from tests.reference.map import Map
from tests.reference.order import Order
from tests.reference.resample import Resample
from tests.reference.sessions import Sessions
from tests.reference.tuples import Operator, Row
from tests.reference.union import Union

__all__ = [
    "Aggregate",
    "Arrival",
    "BSort",
    "Filter",
    "Graph",
    "Join",
    "Map",
    "Node",
    "Operator",
    "Order",
    "Resample",
    "Row",
    "Sessions",
    "TableJoin",
    "Tick",
    "Union",
    "in_turn",
    "run_reference",
    "side_by_side",
]
