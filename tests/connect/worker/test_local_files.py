"""Connectors use files of the worker's machine only where its properties allow it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import DatabaseError

from connect.config_providers.providers import FileConfigProvider
from connect.connectors.file_stream import FileStreamSinkTask, FileStreamSourceTask
from connect.connectors.jdbc.connection import engine_of
from connect.connectors.object_store.settings import CONFIG
from connect.connectors.object_store.sink import mistake_in
from connect.connectors.object_store.store import Store
from connect.local_files import allow_directories, allowed_path, file_mistakes
from connect.worker.override_policy import require_harmless
from millstream.connect import ConfigException
from millstream.connect.config.types import Password
from millstream.testing import LocalBroker
from tests.lib.connect_topics import lines, produce
from tests.lib.connect_worker import ConnectWorker, eventually


@pytest.fixture
def allowed(tmp_path: Path) -> Iterator[Path]:
    """Give the one directory that is allowed: a secret lies beside it."""
    (tmp_path / "secret").write_text("swordfish\n")
    inside = tmp_path / "allowed"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "up").symlink_to(tmp_path)
    allow_directories([str(inside)])
    yield inside
    allow_directories(["/"])


OUTSIDE = ("{0}/../secret", "{0}/link", "{0}/up/secret", "{0}-not/x", "/etc/passwd", "x", "{0}\0/x")


@pytest.mark.parametrize("path", OUTSIDE)
def test_links_and_dots_do_not_lead_out(allowed: Path, path: str) -> None:
    with pytest.raises(ConfigException, match=r"file\.allowed\.directories|null byte"):
        allowed_path("file", path.format(allowed))
    source = FileStreamSourceTask()
    source.start({"file": path.format(allowed), "topic": "t"})
    source.context = type("Context", (), {"offset_storage_reader": NoOffsets()})()
    with pytest.raises(ConfigException):
        source.poll()
    with pytest.raises(ConfigException):
        FileStreamSinkTask().start({"file": path.format(allowed)})
    with pytest.raises(ConfigException):
        engine_of(database(f"sqlite:///{path.format(allowed)}".replace("\0", "/../../")))


class NoOffsets:
    def offset(self, partition: object) -> None:
        del partition


def database(url: str) -> dict[str, object]:
    return {"connection.url": Password(url), "connection.user": None, "connection.password": None}


def test_what_lies_inside_is_allowed_and_nothing_without_directories(allowed: Path) -> None:
    assert allowed_path("file", f"{allowed}/a/../b") == str(allowed / "b")
    engine_of(database(f"sqlite:///{allowed}/shop.db"))
    engine_of(database("sqlite:///:memory:"))
    for url in (f"sqlite:///file:{allowed}/../x?uri=true", "sqlite:///file:/etc/x"):
        with pytest.raises(ConfigException, match="SQLite's URIs"):
            engine_of(database(url))
    allow_directories([])
    with pytest.raises(
        ConfigException, match=r"started with file\.allowed\.directories in its properties"
    ):
        allowed_path("file", f"{allowed}/b")


def test_no_statement_opens_another_file(allowed: Path) -> None:
    with engine_of(database(f"sqlite:///{allowed}/shop.db")).connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x)")
        connection.commit()
        for statement in ("ATTACH '{0}' AS other", "VACUUM INTO '{0}'"):
            with pytest.raises(DatabaseError, match=r"not authorized|authorization denied"):
                connection.exec_driver_sql(statement.format(allowed.parent / "other.db"))
    assert not (allowed.parent / "other.db").exists()


def test_variables_read_what_connectors_may_unless_paths_are_given(allowed: Path) -> None:
    (allowed.parent / "s.properties").write_text("a=1\n")
    (allowed / "s.properties").write_text("a=1\n")
    provider = FileConfigProvider()
    provider.configure({})
    assert provider.get(str(allowed / "s.properties")) == {"a": "1"}
    assert provider.get(str(allowed.parent / "s.properties")) == {}
    assert provider.get(str(allowed / "up" / "s.properties")) == {}
    provider.configure({"allowed.paths": str(allowed.parent)})
    assert provider.get(str(allowed.parent / "s.properties")) == {"a": "1"}


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "/folder", "file://host/folder", "file:folder", "http://", "http://[::1"]
)
def test_a_store_is_a_server_or_a_folder(url: str) -> None:
    told = {"store.url": url, "flush.size": "1", "s3.bucket.name": "files"}
    wrong = mistake_in(CONFIG.parse(told))
    assert wrong is not None
    assert wrong[0] == "store.url"


def test_no_folder_of_a_store_leads_out(allowed: Path) -> None:
    (allowed / "files").mkdir()
    (allowed / "files" / "topics").symlink_to(allowed.parent)
    store = Store({"store.url": (allowed / "files").as_uri()})
    store.write("a/b", b"x")
    assert (allowed / "files" / "a" / "b").read_bytes() == b"x"
    for path in ("../b", "topics/b", "../../b"):
        with pytest.raises(ConfigException):
            store.write(path, b"x")
    with pytest.raises(ConfigException):
        Store({"store.url": (allowed / "up").as_uri()})


def test_keys_and_certificates_are_files_too(allowed: Path) -> None:
    settings = {
        "consumer.override.ssl.keystore.location": "/etc/key.p12",
        "producer.override.ssl.ca.location": f"{allowed}/ca.pem",
        "value.converter.schema.registry.ssl.truststore.location": "/etc/ca.pem",
        "source.cluster.sasl.kerberos.keytab": "/etc/krb5.keytab",
        "database.sslrootcert": "/etc/ca.pem",
        "sasl.oauthbearer.assertion.private.key.file": "/etc/key",
        "elastic.https.ssl.keystore.location": f"{allowed}/link",
        "topics": "/etc/ca.pem",
        "file.location.name": "/etc/x",
    }
    assert sorted(file_mistakes(settings)) == [
        "consumer.override.ssl.keystore.location",
        "database.sslrootcert",
        "elastic.https.ssl.keystore.location",
        "sasl.oauthbearer.assertion.private.key.file",
        "source.cluster.sasl.kerberos.keytab",
        "value.converter.schema.registry.ssl.truststore.location",
    ]


TOKEN = "sasl.oauthbearer.token.endpoint.url"
ISSUER = "https://issuer.example/token"
KEYTAB = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="{}" useKeyTab=true;'


def test_a_token_comes_from_an_allowed_file_or_server(allowed: Path) -> None:
    """CVE-2025-27817: the URL of a token reads any file, and asks any server."""
    allow_directories([str(allowed)], [ISSUER])
    settings = {
        f"producer.override.{TOKEN}": "file:///etc/passwd",
        f"consumer.override.{TOKEN}": "http://169.254.169.254/token",
        f"admin.override.{TOKEN}": "https://issuer.example/token?to=elsewhere",
        f"source.cluster.{TOKEN}": "http://[x",
        "producer.override.org.apache.kafka.sasl.oauthbearer.allowed.urls": "file:///etc/passwd",
        "consumer.override.sasl.jaas.config": KEYTAB.format("/etc/krb5.keytab"),
    }
    assert sorted(file_mistakes(settings)) == sorted(settings)
    allowed_too = {
        TOKEN: ISSUER,
        f"producer.override.{TOKEN}": (allowed / "token").as_uri(),
        "producer.override.sasl.jaas.config": KEYTAB.format(allowed / "keytab"),
        "admin.override.sasl.jaas.config": "not for the parser",
    }
    assert file_mistakes(allowed_too) == {}


@pytest.mark.parametrize(
    "setting",
    ["plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location", "ssl.providers"],
)
def test_no_override_runs_a_program(setting: str) -> None:
    with pytest.raises(ConfigException, match="runs programs"):
        require_harmless({setting: "x"})


@pytest.mark.slow
def test_a_worker_confines_its_connectors_and_pipes_hold_up_no_preview(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    os.mkfifo(allowed / "pipe")
    (tmp_path / "secret").write_text("swordfish\n")
    (allowed / "link").symlink_to(tmp_path / "secret")
    with LocalBroker() as broker:
        produce(broker, "there", "one")
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(tmp_path / "offsets"),
            "file.allowed.directories": str(allowed),
        }
        with ConnectWorker(tmp_path, told) as worker:
            source = {"connector.class": "FileStreamSource", "topic": "lines"}
            sink = {"connector.class": "FileStreamSink", "topics": "there"}
            for config in (source, sink):
                for path in (tmp_path / "secret", allowed / "link", allowed / ".." / "secret"):
                    whole = {"name": "c", **config, "file": str(path)}
                    for answered in (
                        worker.call("POST", "/connectors", {"name": "c", "config": whole}),
                        worker.call("PUT", "/connectors/c/config", whole),
                        worker.call(
                            "POST", f"/connector-plugins/{config['connector.class']}/preview", whole
                        ),
                    ):
                        assert answered.status == 400
                        assert "allows only files in" in answered.body["message"]
            assert (tmp_path / "secret").read_text() == "swordfish\n"
            pipe = {"name": "p", **source, "file": str(allowed / "pipe")}
            began = time.monotonic()
            for _ in range(5):
                refused = worker.call("POST", "/connector-plugins/FileStreamSource/preview", pipe)
                assert (refused.status, "not a regular file" in refused.body["message"]) == (
                    400,
                    True,
                )
            assert time.monotonic() - began < 10
            # A pipe may be read by a connector, and stopping it waits for nobody's other end.
            assert worker.call("PUT", "/connectors/p/config", pipe).status == 201
            worker.wait_for("p", connector="RUNNING", t0="RUNNING")
            with (allowed / "pipe").open("w") as other:
                other.write("through\n")
            # What was put is in the file though the offsets are committed a minute later.
            out = {
                **sink,
                "file": str(allowed / "out"),
                "consumer.override.auto.offset.reset": "earliest",
            }
            assert worker.call("PUT", "/connectors/out/config", out).status == 201
            eventually(lambda: lines(allowed / "out") == ["one"])
            override = {**out, "consumer.override.plugin.library.paths": "/tmp/x.so"}
            refused = worker.call("PUT", "/connectors/out/config", override)
            assert (refused.status, "runs programs" in refused.body["message"]) == (400, True)
            assert worker.stop() == 0
        assert "left behind" not in worker.log()
