"""Read and write plain data as YAML or JSON text, without YAML's pitfalls.

Only true and false are booleans (``on:`` and ``no`` stay text), dates stay text, ``010`` is ten, and a duplicate key is
an error that names the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from headway.errors import NetworkError

_RESOLVERS = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+(?:_[0-9]+)*|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
)


_MERGE = "tag:yaml.org,2002:merge"
_MANY = (Mapping, list, tuple)
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")
_DEEPEST = 100
_LARGEST = 1_000_000
"""Limits on the nesting and on the number of values of a text, because aliases expand a small text to large data."""


class _Loader(yaml.SafeLoader):
    """Reads plain data only: text, numbers, booleans, null, lists and mappings."""

    _merged = 0
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping and reject duplicate keys, while line numbers are known and nothing is merged yet."""
        node = super().compose_mapping_node(anchor)
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise NetworkError(f"line {key.start_mark.line + 1}: a key must be plain text")
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                continue
            if key.value in seen:
                raise NetworkError(f"line {line}: key '{key.value}' appears twice, first on line {seen[key.value]}")
            seen[key.value] = line
        return node

    def flatten_mapping(self, node: Any) -> None:
        """Merge mappings of ``<<`` without duplicates: PyYAML keeps them, and nested merges would multiply them."""
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        given = [value for key, value in node.value if key.tag == _MERGE]
        if not given:
            return
        node.value = own
        merged: dict[tuple[str, str], Any] = {}
        for value in given:
            for part in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(part, yaml.MappingNode):
                    raise NetworkError(f"line {part.start_mark.line + 1}: '<<' merges mappings only")
                self.flatten_mapping(part)
                self._merged += len(part.value)
                if self._merged > _LARGEST:
                    raise NetworkError("the file is too large: '<<' makes too many keys")
                merged.update({(key.tag, key.value): (key, inner) for key, inner in part.value})
        mine = {(key.tag, key.value) for key, _ in own}
        node.value = [pair for name, pair in merged.items() if name not in mine] + own


class _Dumper(yaml.SafeDumper):
    """Writes data so that `_Loader` reads it back unchanged."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: anchors are for people who write by hand."""
        return True


for _class in (_Loader, _Dumper):
    for _tag, _pattern, _first in _RESOLVERS:
        _class.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), list(_first))


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 16 if text.lower().startswith("0x") else 10)


def _construct_bool(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    text = str(loader.construct_scalar(node))
    if text.lower() not in ("true", "false"):
        raise NetworkError(f"line {node.start_mark.line + 1}: a truth value is true or false, not '{text}'")
    return text.lower() == "true"


def _construct_unknown(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
    raise NetworkError(
        f"line {node.start_mark.line + 1}: unknown tag '{tag}'; a file has text, numbers, true and false, null, lists "
        "and mappings, and needs no tags"
    )


# Dates, sets, binary and other tagged values are not plain data; PyYAML also fails on some of them.
_Loader.yaml_constructors = {
    tag: make
    for tag, make in yaml.SafeLoader.yaml_constructors.items()
    if tag in [f"tag:yaml.org,2002:{kind}" for kind in _PLAIN]
}
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:bool", _construct_bool)
_Loader.add_constructor(None, _construct_unknown)


def read_text(text: str) -> Any:
    """Parse a YAML or JSON text, or raise a NetworkError that names the line.

    The result is a tree of bounded size: aliases cannot make it cyclic or huge.
    """
    data = _read(text)
    check_size(data)
    return data


def check_size(data: Any) -> None:
    """Raise a NetworkError for data that is nested too deeply (or cyclic), or too large."""
    level, count = [data], 0
    for _ in range(_DEEPEST):
        some = [one.values() if isinstance(one, Mapping) else one for one in level if isinstance(one, _MANY)]
        count += sum(map(len, some))
        if count > _LARGEST:
            raise NetworkError(f"the file is too large: with all aliases it has more than {_LARGEST} values")
        level = [inner for values in some for inner in values]
        if not level:
            return
    raise NetworkError(f"the file is nested too deeply: more than {_DEEPEST} levels")


def _read(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            pass  # YAML in flow style, or an error that YAML's parser can locate
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise NetworkError(f"{where}not valid YAML: {what}") from error
    except yaml.YAMLError as error:
        raise NetworkError(f"not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise NetworkError("not valid YAML: nested too deeply") from error
    except (ValueError, OverflowError, LookupError, TypeError, AttributeError) as error:
        raise NetworkError("not valid YAML: a number is too long or cannot be read") from error


def write_text(data: Any) -> str:
    """Render plain data as YAML text that `read_text` reads back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key appears twice")
    return mapping
