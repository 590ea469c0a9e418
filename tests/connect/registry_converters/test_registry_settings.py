"""What the settings of converters with a registry make of requests to it."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from connect.registry_converters.json_schema import JsonSchemaConverter
from connect.registry_converters.protobuf import ProtobufConverter, _zigzag_of, read_places
from connect.registry_converters.registry import Registry, registry_config
from millstream.connect import ConfigException, Converter, DataException, Schema, Struct
from millstream.connect.errors import RetriableException
from millstream.testing.certificates import CertificateAuthority

PEOPLE = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="People")


class OneSchema:
    """A registry with one schema for every subject; `requests` are what it was asked."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, str | None]] = []
        self.schema: dict[str, Any] = {"id": 7, "version": 1, "schema": '"string"'}
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(size)
                outer.requests.append((self.path, self.headers.get("Authorization")))
                told = {**outer.schema, "subject": "s"}
                body = json.dumps(told if outer.status == 200 else {"error_code": outer.status})
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def one_schema() -> Iterator[OneSchema]:
    made = OneSchema()
    yield made
    made.stop()


def registry(url: str, **more: str) -> Registry:
    told = {name.replace("_", "."): value for name, value in more.items()}
    parsed = registry_config().parse(
        {"schema.registry.url": url, "converter.type": "value", **told}
    )
    return Registry(parsed)


@pytest.mark.parametrize("name", ["basic_auth_user_info", "schema_registry_basic_auth_user_info"])
def test_a_registry_is_asked_as_the_settings_say(one_schema: OneSchema, name: str) -> None:
    asked = registry(one_schema.url, normalize_schemas="true", **{name: "me:secret"})
    assert asked.id_of("s", '"string"', "AVRO") == 7
    ((path, authorization),) = one_schema.requests
    assert path.lower() == "/subjects/s/versions?normalize=true"
    assert authorization == f"Basic {base64.b64encode(b'me:secret').decode()}"
    asked.close()


def test_a_secured_registry_is_reached_with_pem_files(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    server, alice = authority.issue("server"), authority.issue("alice")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    secured = OneSchema(context)
    trust = {"schema.registry.ssl.truststore.location": str(authority.certificate)}
    shown = {"schema.registry.ssl.keystore.location": str(alice.keystore)}
    asked = registry(secured.url, **trust, **shown)
    assert asked.id_of("s", '"string"', "AVRO") == 7
    asked.close()
    for wrong in (trust, shown):
        asked = registry(secured.url, **wrong)
        with pytest.raises((RetriableException, DataException)):
            asked.id_of("s", '"string"', "AVRO")
        asked.close()
    secured.stop()
    with pytest.raises(ConfigException, match=r"ssl\.truststore\.location=/no/such"):
        registry("https://x", **{"schema.registry.ssl.truststore.location": "/no/such"})


def test_a_newest_schema_is_asked_for_again(one_schema: OneSchema) -> None:
    told = {"auto_register_schemas": "false", "use_latest_version": "true"}
    # A slow machine may ask once more: a second is soon over.
    for ttl, asked_again in (("-1", {1}), ("1", {2, 3})):
        one_schema.requests.clear()
        asked = registry(one_schema.url, latest_cache_ttl_sec=ttl, **told)
        for wait_seconds in (0, 0, 1.1):
            time.sleep(wait_seconds)
            chosen = asked.chosen("s", "AVRO")
            assert chosen is not None
            assert chosen.schema_id == 7
        assert len(one_schema.requests) in asked_again
        asked.close()
    one_schema.schema |= {"schemaType": "JSON"}
    asked = registry(one_schema.url, **told)
    with pytest.raises(DataException, match="has the type JSON"):
        asked.chosen("s", "AVRO")
    one_schema.status = 503
    with pytest.raises(RetriableException):
        asked.chosen("other", "AVRO")
    asked.close()


def test_subjects_are_named_as_the_settings_say() -> None:
    package = "io.confluent.kafka.serializers.subject"
    for strategy, expected in (
        ("TopicNameStrategy", "t-value"),
        ("RecordNameStrategy", "shop.R"),
        ("TopicRecordNameStrategy", "t-shop.R"),
    ):
        made = registry("http://x", value_subject_name_strategy=f"{package}.{strategy}")
        assert made.subject("t", "shop.R") == expected
        made.close()


def converter(made: Converter, url: str, **more: str) -> Any:
    told = {name.replace("_", "."): value for name, value in more.items()}
    made.configure({"schema.registry.url": url, **told}, False)
    return made


CHOSEN = {"auto_register_schemas": "false", "use_latest_version": "true"}


def test_json_is_checked_by_the_newest_schema(one_schema: OneSchema) -> None:
    document = {"type": "object", "properties": {"id": {"type": "integer", "maximum": 9}}}
    one_schema.schema |= {"schema": json.dumps(document), "schemaType": "JSON"}
    made = converter(JsonSchemaConverter(), one_schema.url, **CHOSEN)
    written = made.from_connect_data("t", PEOPLE, Struct(PEOPLE, {"id": 9}))
    assert written[:5] == b"\0\0\0\0\7"
    with pytest.raises(DataException, match="not valid in schema 7"):
        made.from_connect_data("t", PEOPLE, Struct(PEOPLE, {"id": 10}))
    made.close()
    told = {**CHOSEN, "latest_compatibility_strict": "false"}
    made = converter(JsonSchemaConverter(), one_schema.url, **told)
    assert made.from_connect_data("t", PEOPLE, Struct(PEOPLE, {"id": 10})) is not None
    made.close()


def test_protobuf_is_written_as_the_message_of_the_newest_schema(one_schema: OneSchema) -> None:
    from google.protobuf import descriptor_pb2

    file: Any = descriptor_pb2.FileDescriptorProto(syntax="proto3", name="x.proto")
    file.message_type.add(name="Another")
    people = file.message_type.add(name="People")
    people.field.add(name="id", number=1, type=3, label=1)
    people.field.add(name="name", number=2, type=9, label=1)
    text = base64.b64encode(file.SerializeToString()).decode()
    one_schema.schema |= {"schema": text, "schemaType": "PROTOBUF"}
    made = converter(ProtobufConverter(), one_schema.url, **CHOSEN)
    written = made.from_connect_data("t", PEOPLE, Struct(PEOPLE, {"id": 9, "name": "x"}))
    # The second message of the schema's file.
    assert written == b"\0\0\0\0\7" + b"\2\2" + b"\x08\x09\x12\x01x"
    other = Schema.struct({"name": Schema.string(), "id": Schema.int64()}, name="People")
    with pytest.raises(DataException, match="is different in schema 7"):
        made.from_connect_data("t", other, Struct(other, {"id": 9, "name": "x"}))
    unknown = Schema.struct({"id": Schema.int64()}, name="Nobody")
    with pytest.raises(DataException, match="has no message Nobody"):
        made.from_connect_data("t", unknown, Struct(unknown, {"id": 9}))
    made.close()


@pytest.mark.parametrize("number", [0, 1, 63, 64, 8191, 8192])
def test_places_are_written_as_they_are_read(number: int) -> None:
    assert read_places(_zigzag_of(1) + _zigzag_of(number))[0] == (number,)


def test_a_null_in_json_and_protobuf_is_its_default_or_stays(one_schema: OneSchema) -> None:
    schema = Schema.struct({"n": Schema.string(optional=True, default="d")}, name="N")
    value = Struct(schema, {})
    for told, expected in (({}, b"d"), ({"ignore_default_for_nullables": "true"}, None)):
        for kind in (JsonSchemaConverter, ProtobufConverter):
            made = converter(kind(), one_schema.url, **told)
            written = made.from_connect_data("t", schema, value)
            assert (b"d" in written[6:].replace(b"null", b"").replace(b'"n"', b"")) == bool(
                expected
            )
            made.close()


@pytest.mark.parametrize("kind", [JsonSchemaConverter, ProtobufConverter])
def test_what_is_refused_is_told_with_the_configuration_and_at_the_start(
    kind: type[Converter],
) -> None:
    told = {"schema.registry.url": "http://x", "converter.type": "value"}
    wrong = {**told, "bearer.auth.token": "t", "schema.backup.enabled": "true"}
    values = kind.validate(wrong)
    assert {name for name, each in values.items() if each.error_messages} == {
        "bearer.auth.token",
        "schema.backup.enabled",
    }
    with pytest.raises(ConfigException, match=r"bearer\.auth\.token is not supported"):
        kind().configure(wrong, False)
    harmless = {**told, "schema.backup.enabled": "false", "max.schemas.per.subject": "9"}
    assert not any(each.error_messages for each in kind.validate(harmless).values())
