"""Settings of the job, from options and variables."""

import pytest

from common.process.settings import read_settings
from spark_analytics.jobs.settings import JobSettings


def test_option_wins_over_variable() -> None:
    environment = {"MILLSTREAM_MASTER": "local[4]", "MILLSTREAM_TRIGGER_MS": "250"}

    settings = read_settings(JobSettings, "job", "A job.", ["--master", "local[1]"], environment)

    assert settings.master == "local[1]"
    assert settings.trigger_ms == 250


def test_unknown_option_ends_the_program() -> None:
    with pytest.raises(SystemExit):
        read_settings(JobSettings, "job", "A job.", ["--colour", "red"], {})


def test_settings_of_spark_are_passed_on_by_name() -> None:
    settings = JobSettings(spark_conf="spark.jars=/a.jar,/b.jar; spark.driver.memory=1g")

    assert settings.spark_settings() == {
        "spark.jars": "/a.jar,/b.jar",
        "spark.driver.memory": "1g",
    }
