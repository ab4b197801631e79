"""All built-in functions in one table."""

from __future__ import annotations

from headway.expressions.library.base import Builtin
from headway.expressions.library.binaries import over_bytes
from headway.expressions.library.conditionals import CONDITIONALS
from headway.expressions.library.maths import MATHS
from headway.expressions.library.strings import STRINGS
from headway.expressions.library.times import TIMES

GROUPS: dict[str, tuple[Builtin, ...]] = {
    "Conditionals": CONDITIONALS,
    "Strings": tuple([over_bytes(function) for function in STRINGS]),
    "Mathematics": MATHS,
    "Dates and times": TIMES,
}
BUILTINS: dict[str, Builtin] = {function.name: function for group in GROUPS.values() for function in group}
