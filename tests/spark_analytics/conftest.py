"""One Spark session for a whole test run: it takes ten seconds to start and most of a gigabyte.

Tests that ask for `spark` carry the markers slow and interop.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.lib.quick_spark import quick_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def kafka_jars() -> list[str]:
    """The official connector's jars; an empty list when they cannot be had."""
    from tests.lib.spark import connector_jars

    return connector_jars()


@pytest.fixture(scope="session")
def spark(kafka_jars: list[str]) -> Iterator["SparkSession"]:
    """The session; the official connector is in it when its jars are there."""
    from spark_analytics.java import JavaNotFoundError
    from spark_analytics.session import spark_session
    from tests.lib.spark import INTERPRETED

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "640m",
        "spark.jars": ",".join(kafka_jars),
        **INTERPRETED,
        # One more is a task more, and files of state more, for each step of each query.
        "spark.sql.shuffle.partitions": "1",
    }
    with pytest.MonkeyPatch.context() as starting:
        for name, value in quick_spark().items():
            starting.setenv(name, value)
        try:
            session = spark_session("tests", **settings)
        except JavaNotFoundError as error:
            pytest.skip(str(error))
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
