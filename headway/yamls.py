"""YAML and JSON text to plain data and back, without YAML's traps.

Only true and false are truth values (``on:`` and ``no`` stay text), dates stay text, ``010`` is ten, and a
key that stands twice is an error with its line.
"""

from __future__ import annotations

import json
import re
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


class _Loader(yaml.SafeLoader):
    """Reads plain data only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping and refuse doubled keys, while their lines are known and nothing is merged yet."""
        node = super().compose_mapping_node(anchor)
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise NetworkError(f"line {key.start_mark.line + 1}: a key must be plain text")
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise NetworkError(f"line {line}: key '{key.value}' appears twice, first on line {seen[key.value]}")
            seen[key.value] = line
        return node


class _Dumper(yaml.SafeDumper):
    """Writes what `_Loader` reads back as the same."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own protocol

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: anchors are for people who write by hand."""
        return True


for _class in (_Loader, _Dumper):
    for _tag, _pattern, _first in _RESOLVERS:
        _class.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), list(_first))


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(node.value)
    return int(text, 16 if text.lower().startswith("0x") else 10)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def read_text(text: str) -> Any:
    """Return the data of a YAML or JSON text, or raise a NetworkError that names the line."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            pass  # YAML in flow style, or a mistake that YAML's message locates
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
    except (ValueError, OverflowError) as error:
        raise NetworkError("not valid YAML: a number is too long or cannot be read") from error


def write_text(data: Any) -> str:
    """Return plain data as YAML text that `read_text` reads back."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key appears twice")
    return mapping
