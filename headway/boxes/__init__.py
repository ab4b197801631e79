"""Headway's boxes: one frozen specification per operator."""

from headway.boxes.aggregate import Aggregate, When
from headway.boxes.bsort import BSort
from headway.boxes.filter import Filter
from headway.boxes.join import Join
from headway.boxes.keys import Key
from headway.boxes.map import Map
from headway.boxes.operator import REGISTRY, Operator
from headway.boxes.order import Order
from headway.boxes.resample import Resample
from headway.boxes.union import Union
from headway.boxes.universal import Universal
from headway.durations import Duration

__all__ = [
    "REGISTRY",
    "Aggregate",
    "BSort",
    "Duration",
    "Filter",
    "Join",
    "Key",
    "Map",
    "Operator",
    "Order",
    "Resample",
    "Union",
    "Universal",
    "When",
]
