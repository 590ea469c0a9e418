"""Where settings come from, and what is refused."""

from pathlib import Path

import pytest

from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import collect_settings, parse_properties, validate_name
from common.kafka.errors import ErrorCode, KafkaError


def collect(
    text: str = "", environment: dict[str, str] | None = None, overrides: tuple[str, ...] = ()
) -> dict[str, str]:
    settings = parse_properties(text)
    listed = [f"{name}={value}" for name, value in settings.items()]
    return collect_settings(
        file=None, environment=environment or {}, overrides=[*listed, *overrides]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("num.partitions=3", {"num.partitions": "3"}),
        ("  num.partitions : 3  ", {"num.partitions": "3"}),
        ("num.partitions 3", {"num.partitions": "3"}),
        ("# a comment\n! another\n\nlog.dir=/a", {"log.dir": "/a"}),
        ("log.dirs=/a,\\\n   /b", {"log.dirs": "/a,/b"}),
        ("log.dir=/a\\u0020b", {"log.dir": "/a b"}),
        ("log.dir=/a\\=b\\\\c", {"log.dir": "/a=b\\c"}),
        ("key\\ with\\:escapes = v", {"key with:escapes": "v"}),
        ("empty=", {"empty": ""}),
        ("alone", {"alone": ""}),
        ("ends=with\\", {"ends": "with"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_malformed_unicode_escape_is_refused() -> None:
    with pytest.raises(KafkaError, match="escape"):
        parse_properties("log.dir=\\u12")


def test_overrides_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nlog.dir=/file\nnode.id=7\n")
    settings = collect_settings(
        file=file,
        environment={"KAFKA_NUM_PARTITIONS": "2", "KAFKA_LOG_DIR": "/variable"},
        overrides=["num.partitions=3"],
    )
    assert settings == {"num.partitions": "3", "log.dir": "/variable", "node.id": "7"}


def test_an_unknown_setting_is_refused_with_the_nearest_known_name() -> None:
    with pytest.raises(KafkaError) as refused:
        collect(overrides=("num.partitons=3",))
    assert refused.value.code == ErrorCode.INVALID_CONFIG
    assert "'num.partitions'" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("port", "listeners"),
        ("host.name", "listeners"),
        ("http.port", "http.listener"),
        ("advertised.host.name", "advertised.listeners"),
        ("zookeeper.connect", "controller.quorum.voters"),
        ("zookeeper.session.timeout.ms", "controller.quorum.voters"),
    ],
)
def test_a_name_from_elsewhere_is_known_for_what_it_means(name: str, meant: str) -> None:
    with pytest.raises(KafkaError, match=f"{name}.*{meant}"):
        validate_name(name)


def test_an_unknown_variable_is_passed_by_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    environment = {"KAFKA_BOOTSTRAP_SERVERS": "x:1", "KAFKA_HEAP_OPTS": "-Xmx1g", "PATH": "/bin"}
    assert collect(environment=environment) == {}
    assert "KAFKA_BOOTSTRAP_SERVERS" in caplog.text
    assert "KAFKA_HEAP_OPTS" not in caplog.text


def test_a_setting_that_kafka_calls_internal_is_passed_by_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = collect(overrides=("unstable.api.versions.enable=true", "node.id=2"))
    assert given == {"node.id": "2"}
    assert "unstable.api.versions.enable is internal to Apache Kafka" in caplog.text


def test_variables_name_settings_as_in_kafkas_images() -> None:
    environment = {"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false", "KAFKA_LOG_RETENTION_MS": "5"}
    assert collect(environment=environment) == {
        "auto.create.topics.enable": "false",
        "log.retention.ms": "5",
    }


@pytest.mark.parametrize("override", ["num.partitions", "", "=3"])
def test_an_override_without_a_known_name_is_refused(override: str) -> None:
    with pytest.raises(KafkaError):
        collect(overrides=(override,))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="cannot read"):
        collect_settings(file=tmp_path / "missing", environment={}, overrides=())


def test_the_table_of_settings_is_whole() -> None:
    assert len(KNOWN_SETTINGS) > 330
    assert KNOWN_SETTINGS["num.partitions"].default == "1"
    assert KNOWN_SETTINGS["log.retention.ms"].default is None
    assert KNOWN_SETTINGS["controller.quorum.voters"].default == ""
