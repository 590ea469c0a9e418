"""The list of Apache Kafka's defaults that is kept here is what its jars say."""

import subprocess
from pathlib import Path

import pytest

from tests.lib.apache_kafka import JAVA, kafka_libs
from tests.lib.java import java_program

pytestmark = pytest.mark.interop

KEPT = Path(__file__).parents[3] / "docs" / "kafka-4.3.1-defaults.tsv"


def test_the_kept_defaults_are_those_of_the_jars() -> None:
    libs = kafka_libs()
    if not list(Path(libs).glob("kafka-clients-4.3.1.jar")):
        pytest.skip("the jars are of another version")
    command = java_program(libs, JAVA / "ListDefaults.java", "-Xmx256m")
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert sorted(listed.stdout.splitlines()) == KEPT.read_text().splitlines()
