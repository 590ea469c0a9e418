"""The lists of Apache Kafka's settings that are kept here are what its jars say."""

import subprocess
from pathlib import Path

import pytest

from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import JAVA, java_program

pytestmark = pytest.mark.interop

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ("ListDefaults", "kafka-4.3.1-defaults.tsv"),
        ("ListDynamicSettings", "kafka-4.3.1-dynamic-settings.tsv"),
    ],
)
def test_what_is_kept_is_what_the_jars_say(program: str, kept: str) -> None:
    libs = kafka_libs()
    if not list(Path(libs).glob("kafka-clients-4.3.1.jar")):
        pytest.skip("the jars are of another version")
    command = java_program(libs, JAVA / f"{program}.java", "-Xmx256m")
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert sorted(listed.stdout.splitlines()) == (DOCS / kept).read_text().splitlines()
