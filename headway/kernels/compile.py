"""From specifications to kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import pyarrow as pa

from headway.boxes.aggregate import Aggregate, When
from headway.boxes.bsort import BSort
from headway.boxes.filter import Filter
from headway.boxes.join import Join
from headway.boxes.map import Map
from headway.boxes.operator import Operator, load_entry
from headway.boxes.resample import Resample
from headway.boxes.union import Union
from headway.boxes.universal import Universal
from headway.errors import NetworkError
from headway.expressions import Functions
from headway.kernels.aggregate import AggregateKernel
from headway.kernels.approximate import WeightedAggregate, WeightedSessions
from headway.kernels.bsort import BSortKernel
from headway.kernels.chain import ChainKernel, Link
from headway.kernels.filter import RouteKernel
from headway.kernels.join import JoinKernel
from headway.kernels.kernel import Kernel
from headway.kernels.resample import ResampleKernel
from headway.kernels.sessions import SessionKernel
from headway.kernels.union import UnionKernel
from headway.kernels.universal import UniversalKernel
from headway.network.schema import Schema

Tables = Sequence[pa.Table | None]
"""For each input of a box, the content of a static table, or None for a stream."""


GROUP = "headway.kernels"
"""The entry points by which installed packages give their operators' kernels: functions as `compile_kernel` is one."""


@singledispatch
def compile_kernel(
    spec: Operator, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
) -> Kernel:
    """Return the kernel of a box for the schemas of its inputs."""
    try:
        make: Any = load_entry(GROUP, spec.op)
    except LookupError:
        raise NetworkError(f"box '{box}': no package gives op '{spec.op}' a kernel (entry points: {GROUP})") from None
    kernel = make(spec, box, schemas, tables, functions)
    if not isinstance(kernel, Kernel):
        raise NetworkError(f"box '{box}': the entry point '{spec.op}' in the group {GROUP} gives no Kernel: {kernel!r}")
    return kernel


@compile_kernel.register
def _(spec: Filter, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return RouteKernel(box, schemas[0], spec.predicates(schemas[0], functions))


@compile_kernel.register
def _(spec: Map, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return ChainKernel((compile_link(spec, box, schemas[0], functions),))


@compile_kernel.register
def _(spec: Union, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return UnionKernel()


@compile_kernel.register
def _(spec: Universal, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return UniversalKernel(spec, box)


@compile_kernel.register
def _(spec: BSort, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return BSortKernel(spec, schemas[0])


@compile_kernel.register
def _(spec: Aggregate, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    sessions = isinstance(spec.advance, When)
    if spec.approximate:
        return (WeightedSessions if sessions else WeightedAggregate)(box, spec, schemas[0], functions)
    return (SessionKernel if sessions else AggregateKernel)(box, spec, schemas[0], functions)


@compile_kernel.register
def _(spec: Join, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    for side, table in enumerate(tables):
        if table is not None:
            return JoinKernel(box, spec, schemas, functions, table, side)
    return JoinKernel(box, spec, schemas, functions)


@compile_kernel.register
def _(spec: Resample, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return ResampleKernel(box, spec, schemas, functions)


def compile_link(spec: Operator, box: str, schema: Schema, functions: Functions | None) -> Link:
    """Return a fusable box, of which only the first output is wanted, as a link of a chain."""
    predicates, results = spec.projection(schema, functions)
    return Link(box, schema, predicates[0] if predicates else None, tuple(one for _, one in results or ()))
