"""Tables as plain text."""

from headway.engines.plaintext import CELL, cut, text_table

__all__ = ["CELL", "cut", "text_table"]
