"""History: what a connection point keeps, in Parquet files sorted by storage key; independent of engines."""

from headway.history.coverage import Since
from headway.history.files import Layout, write_file
from headway.history.footers import Footers
from headway.history.kept import NUMBER, PLACE, STAMP, START, Kept, Position, through
from headway.history.keys import NULL
from headway.history.loading import read_files
from headway.history.manifest import FORMAT, file_name
from headway.history.plans import Plan
from headway.history.readers import Reader
from headway.history.records import HistoryFile
from headway.history.rows import Rows
from headway.history.store import History
from headway.history.writers import Writers

__all__ = [
    "FORMAT",
    "NULL",
    "NUMBER",
    "PLACE",
    "STAMP",
    "START",
    "Footers",
    "History",
    "HistoryFile",
    "Kept",
    "Layout",
    "Plan",
    "Position",
    "Reader",
    "Rows",
    "Since",
    "Writers",
    "file_name",
    "read_files",
    "through",
    "write_file",
]
