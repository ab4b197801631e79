"""``python -m tests.fuzz``: try cases, or one again.

python -m tests.fuzz --cases 100000 --seed 1
python -m tests.fuzz --cases 2000 --kinds csv,jsonl
python -m tests.fuzz network:12345:2       one case in this process, with its whole traceback
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.fuzz.judging import Case, judge
from tests.fuzz.runner import plan, run, work


def main() -> int:
    """Try cases; exit code 1 if one went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("case", nargs="?", help="KIND:SEED:SIZE")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="default: by the clock, and told")
    parser.add_argument("--kinds", help="only these, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work()
        return 0
    if args.case:
        from tests.fuzz.kinds import KINDS

        case = Case.parse(args.case)
        found = judge(case, KINDS[case.kind][0])
        print("all is well" if found is None else f"{found[0]}\n{found[1]}")
        return 1 if found else 0
    seed = int(time.time()) if args.seed is None else args.seed
    print(f"{args.cases:,} cases, seed {seed}", flush=True)
    findings = run(plan(args.cases, seed, (args.kinds or "").split(",") if args.kinds else ()), args.jobs, _tell)
    for finding in findings:
        print(f"\n== {finding}")
    print(f"{len(findings)} findings in {args.cases:,} cases, seed {seed}")
    return 1 if findings else 0


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
