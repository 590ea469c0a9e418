"""Print the slowest tests and the slowest files of the last `make test`."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

SHOWN = 20


def slowest(reports: Iterable[str]) -> list[str]:
    """Return the lines to print for reports in JUnit's format."""
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for case in cases_of(reports):
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


def cases_of(reports: Iterable[str]) -> Iterator[ElementTree.Element]:
    """Yield every test in the reports."""
    for report in reports:
        yield from ElementTree.fromstring(report).iter("testcase")


def main() -> int:
    """Read the reports that `make test` has left in a folder."""
    paths = sorted(Path(sys.argv[1]).glob("*.xml"))
    if not paths:
        print(f"There is nothing in {sys.argv[1]} yet: `make test` writes it.", file=sys.stderr)
        return 1
    print(*slowest(path.read_text(encoding="utf-8") for path in paths), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
