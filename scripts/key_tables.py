"""Write the tables of keys and options into the documents, from what the code itself says of them.

A line ``<!-- keys: aggregate -->`` in a document is followed by the table of that operator's keys, and a line
``<!-- options: run -->`` by that of a command's options; ``<!-- options: call -->`` stands for those of `headway.run`.
Run ``python -m scripts.key_tables`` after one has changed; a test says when that was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway import files
from headway.boxes import REGISTRY, Key, Order
from headway.cli.main import COMMANDS
from headway.options.kinds import Option
from headway.options.table import CALL, SCHEDULE

DOCS = Path(__file__).parent.parent / "docs"
_MARK = re.compile(r"(<!-- (keys|options): (\w+) -->\n)(?:\n(?:(?!<!--)[^\n|]+\n)?\n?(?:\|[^\n]*\n)+)?")
_FILE_KEYS: Mapping[str, tuple[str, Sequence[Key]]] = {
    "network": ("The whole file:", files.NETWORK_KEYS),
    "source": ("A source:", files.SOURCE_KEYS),
    "point": ("A connection point, which is on an arc or has stored data:", files.POINT_KEYS),
    "view": ("A view:", files.VIEW_KEYS),
    "output": ("An output:", files.OUTPUT_KEYS),
    "qos": ("`qos` of an output:", files.QOS_KEYS),
    "value": ("`value` in `qos`:", files.VALUE_KEYS),
    "order": ("", Order.keys),
}


def table(keys: Sequence[Key]) -> str:
    """Return keys as a table: name, whether it must be there, what it says."""
    rows = [f"| `{key.name}` | {'yes' if key.required else ''} | {_cell(key.doc)} |" for key in keys]
    return "\n".join(["| key | required | meaning |", "|---|---|---|", *rows]) + "\n"


def filled(text: str) -> str:
    """Return a document with all its tables of keys as the code has them."""
    return _MARK.sub(lambda match: match[1] + "\n" + _block(match[2], match[3]), text)


def _block(what: str, name: str) -> str:
    if what == "options":
        return _call_table() if name == "call" else _flag_table(COMMANDS[name].flags)
    if name == "schedule":
        rows = [(f"`{one.name}`", f"{one.key_text}" + (f"; see {one.see}" if one.see else "")) for one in SCHEDULE]
        return "`schedule`:\n\n" + _rows(("key", "meaning"), rows)
    if name in REGISTRY:
        return f"{REGISTRY[name].doc}\n\n{table(REGISTRY[name].keys)}"
    title, keys = _FILE_KEYS[name]
    return f"{title}\n\n{table(keys)}" if title else table(keys)


def _flag_table(options: Sequence[Option]) -> str:
    return _rows(("option", "meaning"), [(f"`{one.flag}`", _meaning(one)) for one in options])


def _call_table() -> str:
    rows = [(f"`{one.name}`", one.takes or f"`{one.type}`", _meaning(one)) for one in CALL]
    return _rows(("argument of `hw.run`", "takes", "meaning"), rows)


def _meaning(option: Option) -> str:
    return option.meaning(option.default_text) + (f"; see {option.see}" if option.see else "")


def _rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (header, ["---"] * len(header), *rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    lines[1] = "|" + "---|" * len(header)
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Set what looks like code as code, and keep bars out of the table."""
    text = re.sub(r"(?<!`)(\{[^`]*\}|\[\[[^`]*\]\])(?!`)", r"`\1`", text)
    return text.replace("|", "\\|")


def main() -> None:
    """Rewrite the documents that have changed."""
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text()
        if (new := filled(text)) != text:
            path.write_text(new)


if __name__ == "__main__":
    main()
