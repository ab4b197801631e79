"""Compilation of specifications to kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headway.boxes import Aggregate, BSort, Filter, Join, Map, Operator, Resample, Union, Universal
from headway.boxes.operator import load_entry
from headway.errors import FOREIGN, NetworkError, blamed
from headway.expressions import Functions
from headway.kernels.bsort import BSortKernel
from headway.kernels.chain import ChainKernel, Link, RouteKernel, UnionKernel
from headway.kernels.guarded import GuardedKernel
from headway.kernels.join import JoinKernel
from headway.kernels.kernel import Kernel, Tables
from headway.kernels.resample import ResampleKernel
from headway.kernels.sessions import aggregate_kernel
from headway.kernels.universal import UniversalKernel
from headway.network.schema import Schema

GROUP = "headway.kernels"
"""The entry points of installed packages for their operators' kernels: functions like those in `_KERNELS`."""


def _map(spec: Map, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None) -> Kernel:
    return ChainKernel((compile_link(spec, box, schemas[0], functions),))


_KERNELS: dict[type[Operator], Callable[..., Kernel]] = {
    Filter: RouteKernel,
    Map: _map,
    Union: UnionKernel,
    Universal: UniversalKernel,
    BSort: BSortKernel,
    Aggregate: aggregate_kernel,
    Join: JoinKernel,
    Resample: ResampleKernel,
}


def compile_kernel(
    spec: Operator, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
) -> Kernel:
    """Return the kernel of a box for the schemas of its inputs."""
    make = _KERNELS.get(type(spec))
    if make is None:
        return _foreign_kernel(spec, box, schemas, tables, functions)
    return make(spec, box, schemas, tables, functions)


def _foreign_kernel(
    spec: Operator, box: str, schemas: Sequence[Schema], tables: Tables, functions: Functions | None
) -> Kernel:
    """Return the kernel that an installed package gives its operator, guarded."""
    try:
        make: Any = load_entry(GROUP, spec.op)
    except LookupError:
        raise NetworkError(f"box '{box}': no package gives op '{spec.op}' a kernel (entry points: {GROUP})") from None
    try:
        kernel = make(spec, box, schemas, tables, functions)
    except FOREIGN as error:
        raise blamed(f"box '{box}': op '{spec.op}': its kernel cannot be made", error, NetworkError) from error
    if not isinstance(kernel, Kernel):
        raise NetworkError(f"box '{box}': the entry point '{spec.op}' in the group {GROUP} gives no Kernel: {kernel!r}")
    streams = [schema for schema, table in zip(schemas, tables, strict=True) if table is None]
    return GuardedKernel(kernel, spec, box, streams, spec.infer(box, schemas, functions))


def compile_link(spec: Operator, box: str, schema: Schema, functions: Functions | None) -> Link:
    """Return a fusable box, of which only the first port is read, as a link of a chain."""
    predicates, results = spec.projection(schema, functions)
    return Link(box, schema, predicates[0] if predicates else None, tuple(one for _, one in results or ()))
