"""Stream types."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import SchemaError
from headway.network.schema import (
    DEEPEST,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TYPE_NAMES,
    Field,
    Schema,
    nesting,
    normalise,
    parse_type,
    type_name,
)

simple = st.sampled_from([name for name in TYPE_NAMES if "<" not in name and "(" not in name]) | st.tuples(
    st.integers(1, 38), st.integers(0, 38)
).filter(lambda pair: pair[1] <= pair[0]).map(lambda pair: f"decimal({pair[0]},{pair[1]})")
names = st.from_regex(r"[A-Za-z][a-z0-9]{0,4}", fullmatch=True)
types = st.recursive(
    simple,
    lambda inner: (
        inner.map(lambda name: f"array<{name}>")
        | st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0]).map(
            lambda pairs: "struct<" + ",".join(f"{name}:{type_}" for name, type_ in pairs) + ">"
        )
    ),
    max_leaves=4,
)


@given(name=types)
def test_names_and_types_go_both_ways(name: str) -> None:
    assert type_name(parse_type(name)) == name
    assert normalise(parse_type(name)) == parse_type(name)


@given(fields=st.dictionaries(names.map(str.lower), types, min_size=1, max_size=5))
def test_schemas_go_through_text_mappings_and_arrow(fields: dict[str, str]) -> None:
    schema = Schema.parse(fields)
    assert Schema.parse(str(schema)) == schema
    assert Schema.from_arrow(schema.to_arrow()) == schema
    assert schema.names == tuple(fields)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("INTEGER", "int"),
        ("long", "bigint"),
        ("Real", "float"),
        ("varchar(10)", "string"),
        ("numeric(5, 2)", "decimal(5,2)"),
        ("dec", "decimal(10,0)"),
        ("timestamp_ltz", "timestamp"),
        (" decimal ( 7 ) ", "decimal(7,0)"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert type_name(parse_type(alias)) == name


@pytest.mark.parametrize(
    "text", ["itn", "decimal(39,0)", "decimal(3,4)", "int(3)", "array<", "array<what>", "", 7, None]
)
def test_bad_types(text: object) -> None:
    with pytest.raises(SchemaError, match="field 'f': "):
        parse_type(text, "f")


def test_a_misspelt_type_gets_a_hint() -> None:
    with pytest.raises(SchemaError, match="did you mean 'bigint'"):
        parse_type("bigit")


@pytest.mark.parametrize(
    ("arrow", "type_"),
    [
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.timestamp("ns"), TIMESTAMP_NTZ),
        (pa.timestamp("s", tz="Europe/Berlin"), TIMESTAMP),
        (pa.date64(), pa.date32()),
        (pa.large_list(pa.uint8()), pa.list_(pa.int16())),
    ],
)
def test_other_arrow_types_are_widened(arrow: pa.DataType, type_: pa.DataType) -> None:
    assert normalise(arrow) == type_


def test_types_without_a_name_are_refused() -> None:
    with pytest.raises(SchemaError, match="field 'x': type duration"):
        normalise(pa.duration("us"), "x")


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("a int, A bigint", "twice"),
        ("__hw_x int", "reserved"),
        ("a", "not a field"),
        ("", "at least one"),
        ({}, "at least one"),
        ({"": "int"}, "empty name"),
        (7, "a schema is"),
    ],
)
def test_bad_schemas(declaration: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        Schema.parse(declaration)


def test_fields_are_found_without_regard_to_case_but_exactly_first() -> None:
    schema = Schema((Field("Alpha", pa.int32()), Field("beta", pa.int64())))
    assert (schema.find("ALPHA"), schema.find("beta"), schema.find("gamma")) == (0, 1, None)
    assert schema.field("BETA").type == pa.int64()
    with pytest.raises(SchemaError, match="unknown field 'alpa'; did you mean 'Alpha'\\? fields: Alpha, beta"):
        schema.index("alpa")
    assert len(schema) == 2
    assert [field.name for field in schema] == ["Alpha", "beta"]


def _arrays(levels: int) -> str:
    return "array<" * levels + "int" + ">" * levels


def _structs(levels: int) -> str:
    return "struct<a:" * levels + "int" + ">" * levels


@pytest.mark.parametrize("text", [_arrays, _structs])
def test_types_up_to_the_limit_of_nesting(text: Callable[[int], str]) -> None:
    type_ = parse_type(text(DEEPEST))
    assert nesting(type_) == DEEPEST
    assert normalise(type_) == type_
    assert type_name(type_) == text(DEEPEST)


@pytest.mark.parametrize("levels", [DEEPEST + 1, 400, 3000])
def test_deeper_types_are_refused_in_one_line(levels: int) -> None:
    said = "field 'f': arrays and structs lie within each other more than 30 deep, which is the limit"
    for made in (_arrays(levels), _structs(levels)):
        for declaration in ({"f": made}, f"f {made}"):
            with pytest.raises(SchemaError) as caught:
                Schema.parse(declaration)
            assert str(caught.value) == said
    type_ = pa.int32()
    for _ in range(levels):
        type_ = pa.list_(type_)
    with pytest.raises(SchemaError) as caught:
        Schema.from_arrow(pa.schema([("f", type_)]))
    assert str(caught.value) == said
    assert type_name(type_).startswith("array<array<")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("number", "double"),
        ("numerc", "decimal(p,s)"),
        ("decimall", "decimal(p,s)"),
        ("integr", "int"),
        ("int64", "bigint"),
        ("float64", "double"),
        ("str", "string"),
        ("datetime", "timestamp"),
        ("array", "array<type>"),
        ("list", "array<type>"),
        ("doubel", "double"),
    ],
)
def test_a_hint_names_a_type_of_the_list(text: str, meant: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type(text)
    said = str(caught.value)
    assert said.startswith(f"unknown type '{text}'; did you mean '{meant}'? types: boolean, ")
    assert meant in said.partition("types: ")[2].split(", ")
