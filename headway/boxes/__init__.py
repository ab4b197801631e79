"""Headway's boxes: one frozen specification per operator."""

from headway.boxes.aggregate import Aggregate, When
from headway.boxes.bsort import BSort
from headway.boxes.costs import Cost, parse_cost
from headway.boxes.durations import Duration, Size, native_size, pair_size
from headway.boxes.filter import Filter
from headway.boxes.join import Join, joined
from headway.boxes.keys import Key
from headway.boxes.map import Map
from headway.boxes.operator import REGISTRY, Operator
from headway.boxes.order import TUPLE_FIELD, TUPLE_NUMBER, Order
from headway.boxes.resample import Resample
from headway.boxes.union import Union
from headway.boxes.universal import Universal

__all__ = [
    "REGISTRY",
    "TUPLE_FIELD",
    "TUPLE_NUMBER",
    "Aggregate",
    "BSort",
    "Cost",
    "Duration",
    "Filter",
    "Join",
    "Key",
    "Map",
    "Operator",
    "Order",
    "Resample",
    "Size",
    "Union",
    "Universal",
    "When",
    "joined",
    "native_size",
    "pair_size",
    "parse_cost",
]
