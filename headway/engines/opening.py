"""What every engine opens first: the readers of the sources, and where dead letters go."""

from __future__ import annotations

import contextlib

from headway.checking import CheckedNetwork
from headway.connectors import open_sink, open_source
from headway.connectors.protocol import Reader, Writer
from headway.connectors.registry import permit_sink, permit_source
from headway.engines.base import RunSettings
from headway.engines.letters import DEAD_LETTERS, DeadLetters
from headway.errors import InputError
from headway.network import thaw
from headway.network.schema import Schema

LETTERS = "dead letters"
"""What dead letters are called among the outputs."""


def permit(checked: CheckedNetwork, settings: RunSettings) -> None:
    """Raise for what the network file may not name, before anything is opened; what the run gives is the operator's."""
    network = checked.network
    for source in network.sources:
        if source.name not in settings.inputs:
            permit_source(source.name, source.schema, thaw(source.connector), network.folder, network.trust)
    for output in network.outputs:
        if output.name not in settings.outputs:
            schema = checked.output_schema(output.name)
            permit_sink(output.name, schema, thaw(output.sink), network.folder, network.trust)


def open_readers(checked: CheckedNetwork, settings: RunSettings, stack: contextlib.ExitStack) -> list[Reader]:
    """Return a reader for each source: what the run gives, else what the network file says; `stack` closes them."""
    network = checked.network
    readers: list[Reader] = []
    for source in network.sources:
        given = settings.inputs.get(source.name, thaw(source.connector))
        if given is None:
            raise InputError(
                f"source '{source.name}' has no input: give one for it, or a 'source:' in the network file"
            )
        own = source.name in settings.inputs
        reader = open_source(
            source.name,
            source.schema,
            given,
            rate=settings.rates.get(source.name),
            strict=settings.strict,
            base=None if own else network.folder,
            trust=network.trust.by_operator() if own else network.trust,
        )
        stack.callback(reader.close)
        readers.append(reader)
    return readers


def open_letters(settings: RunSettings) -> tuple[DeadLetters, Writer | None]:
    """Return the run's dead letters, and the file that the user wants all of them in, if any."""
    sink = None
    if settings.dead_letters is not None:
        sink = open_sink(LETTERS, Schema.from_arrow(DEAD_LETTERS), settings.dead_letters)
    return DeadLetters(settings.strict, None if sink is None else sink.write), sink
