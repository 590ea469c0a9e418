"""Print where the last `make test` spent its time: its slowest tests and its slowest files."""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 20


def slowest(report: str) -> list[str]:
    """Give the lines to print for a report in JUnit's format."""
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for case in ElementTree.fromstring(report).iter("testcase"):
        file, seconds = case.get("classname", "").replace(".", "/"), float(case.get("time", 0))
        tests[f"{file}.py::{case.get('name')}"] += seconds
        files[f"{file}.py"] += seconds
    return [
        f"The slowest {SHOWN} of {len(tests)} tests, in seconds:",
        *(f"{seconds:8.1f}  {name}" for name, seconds in tests.most_common(SHOWN)),
        "",
        f"The slowest {SHOWN} of {len(files)} files, in seconds:",
        *(f"{seconds:8.1f}  {name}" for name, seconds in files.most_common(SHOWN)),
        "",
        f"All tests one after another: {files.total():.0f} s.",
    ]


def main() -> int:
    """Read the report that `make test` has left."""
    path = Path(sys.argv[1])
    if not path.exists():
        print(f"There is no {path} yet: `make test` writes it.", file=sys.stderr)
        return 1
    print(*slowest(path.read_text(encoding="utf-8")), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
