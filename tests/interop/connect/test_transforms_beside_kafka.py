"""Every transformation and predicate on generated records: what ours make is what Kafka's make."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import JAVA, java_program
from tests.lib.transform_cases import Case, cases, generated_cases, is_same, ours

pytestmark = pytest.mark.interop


GENERATED = 100
"""Records for each transformation, beside two thousand cases made by hand."""


def _is_known_difference(case: Case) -> bool:
    """Tell the cases in which ours is meant to be different; connect/README.md lists them."""
    name, config = case["type"].rpartition(".")[2], case["config"]
    value = (case["key"] if "Key" in name else case["value"]) or ""
    is_struct = value.replace(" ", "").startswith('{"schema":{"type":"struct"')
    return (
        (name.startswith("Cast") and "float32" in config["spec"])
        or (name.startswith("SetSchema") and case["schemas"] and not is_struct)
        or (name.startswith("TimestampConv") and config.get("unix.precision") == "seconds")
        or (name.startswith("ReplaceField") and "id:word" in config.get("renames", ""))
        or (config.get("timestamp.format") == "bb" and case["timestamp"] is None)
    )


def test_ours_make_of_every_record_what_kafkas_make_of_it() -> None:
    libs = kafka_libs()
    if not list(Path(libs).glob("connect-transforms-*.jar")):
        pytest.skip(f"no connect-transforms in {libs}")
    made = [*cases(), *generated_cases(seed=15, count=GENERATED)]
    asked = [case for case in made if not _is_known_difference(case)]
    said = subprocess.run(
        java_program(libs, JAVA / "RunTransforms.java"),
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    theirs = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    assert len(theirs) == len(asked) > 0.9 * len(made), said.stderr[-2000:]
    different = [
        (case, answer, our)
        for case, answer, our in zip(asked, theirs, map(ours, asked), strict=True)
        if not is_same(case, answer, our) and "outside the years" not in our.get("message", "")
    ]
    assert not different, (len(different), different[:3])
    assert sum("error" not in answer for answer in theirs) > 0.5 * len(asked)
