"""Sums up test reports: lit's JSON and pytest's JUnit XML.

usage: summarize_tests.py FOLDER REPORT...

Prints `N passed, N failed`, with `, N skipped` if any were, and exits 0 if and only if at least
one test ran and none failed. A report that is missing, broken or empty counts as one failure.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

LIT_OUTCOMES = {
    "PASS": "passed",
    "FLAKYPASS": "passed",
    "XFAIL": "passed",
    "UNSUPPORTED": "skipped",
    "SKIPPED": "skipped",
    "EXCLUDED": "skipped",
}


def count_lit(path: Path) -> Counter:
    """Outcomes of a report of `lit --output`; what is not known to be good is a failure."""
    tests = json.loads(path.read_text())["tests"]
    return Counter(LIT_OUTCOMES.get(test["code"], "failed") for test in tests)


def count_junit(path: Path) -> Counter:
    """Outcomes of a JUnit XML report."""
    counts: Counter = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            counts["failed"] += 1
        else:
            counts["skipped" if "skipped" in kinds else "passed"] += 1
    return counts


def main() -> int:
    folder = Path(sys.argv[1])
    counts: Counter = Counter()
    for name in sys.argv[2:]:
        path = folder / name
        try:
            found = count_lit(path) if path.suffix == ".json" else count_junit(path)
        except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
            print(f"{name}: no report to read: {error}", file=sys.stderr)
            found = Counter(failed=1)
        if not found:
            print(f"{name}: the suite has no tests", file=sys.stderr)
            found = Counter(failed=1)
        counts += found
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    if counts["skipped"]:
        line += f", {counts['skipped']} skipped"
    print(line, flush=True)
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
