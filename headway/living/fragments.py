"""Fragments: boxes and outputs that are attached to a running network, and taken out again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headway.durations import Duration
from headway.network import Box, Network, Output
from headway.network.trust import OWN, Trust


@dataclass(frozen=True, slots=True)
class Since:
    """How much history a fragment gets: what is at most `back` old, or from a `moment` on; `now` for none, else all."""

    back: Duration | None = None
    moment: int | float | datetime | None = None
    now: bool = False


@dataclass(frozen=True, slots=True)
class Fragment:
    """What is attached: boxes and outputs whose inputs are points, views or arcs of the running network.

    `since` None: all, or nothing if it reads only plain arcs. With `until_now`, its input ends at the seam.
    """

    name: str
    since: Since | None
    until_now: bool
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]


def read_fragment(
    what: str | Path | Mapping[str, Any] | Fragment, *, trust: Trust | Mapping[str, Any] | str = OWN
) -> Fragment:
    """Read a fragment from a path, YAML or JSON text, or a mapping, as `headway.files.load` reads a network."""
    raise NotImplementedError


def graft(network: Network, fragment: Fragment) -> Network:
    """Return the network, as written, with the fragment's boxes and outputs, named ``busiest/per_sector``."""
    raise NotImplementedError


def prune(network: Network, name: str) -> Network:
    """Return the network without a fragment's boxes and outputs."""
    raise NotImplementedError


def start_of(fragment: Fragment, network: Network) -> dict[str, dict[int, str]]:
    """Return by box of the grafted fragment, and by its input's place, the point whose history it reads first."""
    raise NotImplementedError
