"""Write the tables of keys into the documents, from the specifications themselves.

A line ``<!-- keys: aggregate -->`` in a document is followed by the table of that operator's keys. Run
``python -m scripts.key_tables`` after a key has changed; a test says when that was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway import files
from headway.boxes import REGISTRY, Key, Order

DOCS = Path(__file__).parent.parent / "docs"
_MARK = re.compile(r"(<!-- keys: (\w+) -->\n)(?:\n(?:(?!<!--)[^\n|]+\n)?\n?(?:\|[^\n]*\n)+)?")
_FILE_KEYS: Mapping[str, tuple[str, Sequence[Key]]] = {
    "network": ("The whole file:", files.NETWORK_KEYS),
    "source": ("A source:", files.SOURCE_KEYS),
    "output": ("An output:", files.OUTPUT_KEYS),
    "qos": ("`qos` of an output:", files.QOS_KEYS),
    "value": ("`value` in `qos`:", files.VALUE_KEYS),
    "schedule": ("`schedule`:", files.SCHEDULE_KEYS),
    "order": ("", Order.keys),
}


def table(keys: Sequence[Key]) -> str:
    """Return keys as a table: name, whether it must be there, what it says."""
    rows = [f"| `{key.name}` | {'yes' if key.required else ''} | {_cell(key.doc)} |" for key in keys]
    return "\n".join(["| key | required | meaning |", "|---|---|---|", *rows]) + "\n"


def filled(text: str) -> str:
    """Return a document with all its tables of keys as the code has them."""
    return _MARK.sub(lambda match: match[1] + "\n" + _block(match[2]), text)


def _block(name: str) -> str:
    if name in REGISTRY:
        return f"{REGISTRY[name].doc}\n\n{table(REGISTRY[name].keys)}"
    title, keys = _FILE_KEYS[name]
    return f"{title}\n\n{table(keys)}" if title else table(keys)


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
