"""Where settings come from, and what is refused."""

from pathlib import Path

import pytest

from broker.config.known_settings import KNOWN_SETTINGS
from broker.config.sources import collect_settings, validate_name
from broker.config.values import Values
from common.kafka.errors import ErrorCode, KafkaError
from common.process.properties import parse_properties


def collect(
    text: str = "", environment: dict[str, str] | None = None, overrides: tuple[str, ...] = ()
) -> dict[str, str]:
    settings = parse_properties(text)
    listed = [f"{name}={value}" for name, value in settings.items()]
    return collect_settings(
        file=None, environment=environment or {}, overrides=[*listed, *overrides]
    )


def test_overrides_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nlog.dir=/file\nnode.id=7\n")
    settings = collect_settings(
        file=file,
        environment={"KAFKA_NUM_PARTITIONS": "2", "KAFKA_LOG_DIR": "/variable"},
        overrides=["num.partitions=3"],
    )
    assert settings == {"num.partitions": "3", "log.dir": "/variable", "node.id": "7"}


def test_a_password_keeps_its_last_blank_and_a_number_loses_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("ssl.key.password=secret \nnum.partitions=3 \nlog.dirs=/a , /b \n")
    values = Values(collect_settings(file=file, environment={}, overrides=()))
    assert values.text("ssl.key.password") == "secret "
    assert values.integer("num.partitions", 1) == 3
    assert values.items("log.dirs") == ["/a", "/b"]


@pytest.mark.parametrize("content", [b"log.dir=\\u00zz", b"log.dir=\xff"])
def test_a_malformed_file_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(content)
    with pytest.raises(KafkaError, match=r"cannot read .*(malformed \\u escape|no text in UTF-8)"):
        collect_settings(file=file, environment={}, overrides=())


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
    ours = {"KAFKA_BOOTSTRAP_SERVERS": "x:1", "KAFKA_REST_URL": "x", "KAFKA_CONTROL_URLS": "x"}
    environment = {"KAFKA_LISTENR": "x:1", "KAFKA_HEAP_OPTS": "-Xmx1g", "PATH": "/bin", **ours}
    assert collect(environment=environment) == {}
    (warning,) = caplog.messages
    assert "KAFKA_LISTENR" in warning


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
