"""Headway's boxes: one frozen specification per operator."""

from headway.boxes.aggregate import Aggregate as Aggregate
from headway.boxes.aggregate import When as When
from headway.boxes.bsort import BSort as BSort
from headway.boxes.filter import Filter as Filter
from headway.boxes.join import Join as Join
from headway.boxes.keys import Key as Key
from headway.boxes.map import Map as Map
from headway.boxes.operator import REGISTRY as REGISTRY
from headway.boxes.operator import Operator as Operator
from headway.boxes.order import Order as Order
from headway.boxes.resample import Resample as Resample
from headway.boxes.union import Union as Union
from headway.boxes.universal import Universal as Universal
from headway.durations import Duration as Duration
