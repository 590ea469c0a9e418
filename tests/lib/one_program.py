"""`python -m tests.lib.one_program demo|spark PLACES`: one of the programs that tests act as.

PLACES is a file of JSON: what a pipeline is made of. The process fails if the program would.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from common.credentials.access import kafka_access
from tests.lib.programs_with_rights import read_as_spark, watch_as_the_demo


def main(name: str, places: str) -> None:
    told: dict[str, Any] = json.loads(Path(places).read_text())
    access = kafka_access(told["bootstrap_servers"], told["file"])
    run: Any = SimpleNamespace(
        urls=told["urls"], folder=Path(told["folder"]), documents=lambda: told["documents"]
    )
    run.folder.mkdir(exist_ok=True)
    {"demo": watch_as_the_demo, "spark": read_as_spark}[name](run, access)


if __name__ == "__main__":
    main(*sys.argv[1:])
