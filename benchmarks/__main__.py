"""Run all benchmarks, print their results as Markdown, and write them into a page if asked."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import calls, latency, machine, memory, throughput, workloads

BEGIN, END = "<!-- results: written by `python -m benchmarks --write` -->", "<!-- end of results -->"


class _Tee(io.StringIO):
    """Keeps what is printed, and prints it."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        return super().write(text)

    def flush(self) -> None:
        sys.__stdout__.flush()  # type: ignore[union-attr]


def run(quick: bool) -> str:
    """Run everything, printing as it goes, and return what was printed; `quick` is for trying the code out."""
    with contextlib.redirect_stdout(_Tee()) as text:
        print(machine.describe() + "\n", flush=True)
        throughput.report(*((100_000, 1) if quick else (workloads.TUPLES, 5)))
        print(flush=True)
        calls.report(*((500, 1) if quick else (calls.TUPLES, 3)))
        print(flush=True)
        latency.report(2.5 if quick else latency.SECONDS)
        print(flush=True)
        memory.report(1_000_000 if quick else memory.TUPLES)
    return text.getvalue()


def replace_results(page: str, results: str) -> str:
    """Return a page with new results between its marks; raises ValueError without marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{head}{BEGIN}\n\n{results.strip()}\n\n{END}{tail}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few tuples: the numbers mean nothing")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results into this page, between its marks")
    given = parser.parse_args(arguments)
    page = None if given.write is None else replace_results(given.write.read_text(), "")
    results = run(given.quick)
    if page is not None:
        given.write.write_text(replace_results(page, results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
