"""Fields that no row has."""

from __future__ import annotations

import pytest

from headway.connectors import open_source
from headway.connectors.protocol import SourceRequest
from headway.connectors.readers import LOOKED_AT, RowConverter
from headway.network.schema import Schema
from tests.connectors.helpers import drain


def test_only_the_first_rows_are_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    converter = RowConverter(SourceRequest("s", Schema.parse("a int, b int"), None))
    converter.look([{"a": 1}] * (LOOKED_AT - 1))
    assert caplog.records == []
    converter.look([{"a": 1}, {"b": 1}])
    converter.look(None)  # type: ignore[arg-type]  # nothing is touched any more
    converter.warn()
    assert [record.getMessage() for record in caplog.records] == ["source 's': no row so far has the field 'b'"]


def test_rows_in_python(caplog: pytest.LogCaptureFixture) -> None:
    schema = Schema.parse("amout double, b int")
    drain(open_source("s", schema, [(1.0, 2)] * 2000))
    assert caplog.records == []
    drain(open_source("s", schema, [{"amount": 1.0, "b": 2}]))
    assert [record.getMessage() for record in caplog.records] == [
        "source 's': no row has the field 'amout'; did you mean 'amount'?"
    ]
