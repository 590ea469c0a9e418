"""How settings of a session come together; no session is started."""

import sys

import pytest

pytest.importorskip("pyspark")

from spark_analytics import session


@pytest.fixture(autouse=True)
def some_java(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "java_home", lambda environment: tmp_path)


def test_arguments_win_over_the_environment_and_both_over_the_defaults():
    environment = {"MILLSTREAM_SPARK_CONF": "spark.master=local[3]; spark.driver.memory=2g\n"}
    settings = session.session_settings({"spark.master": "local[1]"}, environment)
    assert settings["spark.master"] == "local[1]"
    assert settings["spark.driver.memory"] == "2g"
    assert settings["spark.sql.shuffle.partitions"] == "2"


def test_a_setting_may_hold_an_equals_sign():
    assert session.parse_conf("a=-Dx=y;;b= 1 ") == {"a": "-Dx=y", "b": "1"}
    with pytest.raises(ValueError, match="nonsense"):
        session.parse_conf("nonsense")


@pytest.mark.parametrize("master", ["local[*]", "local", "spark://127.0.0.1:7077"])
def test_on_one_machine_everything_stays_on_loopback(master):
    settings = session.session_settings({"spark.master": master}, {})
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert session.session_environment(settings, {})["SPARK_LOCAL_IP"] == "127.0.0.1"


@pytest.mark.parametrize("master", ["spark://far:7077", "k8s://https://far:6443", "yarn"])
def test_a_cluster_can_reach_the_driver(master):
    settings = session.session_settings({"spark.master": master}, {})
    assert "spark.driver.host" not in settings
    assert "SPARK_LOCAL_IP" not in session.session_environment(settings, {})


def test_workers_run_this_python_and_find_the_source():
    settings = session.session_settings({}, {"PYTHONPATH": "there"})
    variables = session.session_environment(settings, {"PYTHONPATH": "there"})
    assert variables["PYSPARK_PYTHON"] == sys.executable
    assert variables["PYTHONPATH"].split(":") == [str(session.PROJECT_FOLDER), "there"]
    assert settings["spark.executorEnv.PYTHONPATH"] == variables["PYTHONPATH"]
