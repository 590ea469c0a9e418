"""Every transformation with two thousand cases: ours and Apache Kafka's make the same of them."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.lib.apache_kafka import JAVA, QUICK_JAVA, kafka_libs
from tests.lib.transform_cases import Case, canonical, cases, ours

pytestmark = pytest.mark.interop


def _is_known_difference(case: Case) -> bool:
    """Tell the cases in which ours is meant to be different.

    Java before 19 writes more digits of some floats than they need (JDK-4511638). Kafka's
    SetSchemaMetadata fails for every schema that is not a struct's, which it says it supports. A
    Python datetime ends with the year 9999.
    """
    name, config = case["type"].rpartition(".")[2], case["config"]
    text = case["key"] or ""
    value = text if "Key" in name else case["value"] or ""
    return (
        (name.startswith("Cast") and "float32" in config["spec"])
        or (name.startswith("SetSchema") and case["schemas"] and '"type": "struct"' not in value)
        or (name.startswith("TimestampConv") and config.get("unix.precision") == "seconds")
    )


def test_ours_make_of_every_record_what_kafkas_make_of_it() -> None:
    libs = kafka_libs()
    if not list(Path(libs).glob("connect-transforms-*.jar")):
        pytest.skip(f"no connect-transforms in {libs}")
    asked = [case for case in cases() if not _is_known_difference(case)]
    command = [*QUICK_JAVA, "-cp", f"{libs}/*", str(JAVA / "RunTransforms.java")]
    said = subprocess.run(
        command,
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    theirs = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    assert len(theirs) == len(asked) > 1800, said.stderr[-2000:]
    different = [
        (case["type"], case["config"], case["key"], case["value"], answer, our)
        for case, answer, our in zip(asked, theirs, map(ours, asked), strict=True)
        if canonical(answer) != canonical(our)
    ]
    assert not different, (len(different), different[:3])
    assert sum("error" not in answer for answer in theirs) > 700
