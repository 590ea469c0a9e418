"""A secret that is only shown stays where it goes to: with another address it is given again."""

import pytest

from connect.definitions import secrets
from connect.definitions.secrets import changed_addresses
from connect.herder.names import RefusalError
from connect.plugins.scan import find_plugins

PLUGINS = find_plugins()
JDBC = {
    "connector.class": "JdbcSink",
    "connection.url": "postgresql://db/shop",
    "connection.user": "shop",
    "connection.password": "swordfish",
    "topics": "orders",
    "tasks.max": "1",
}
ELASTIC = {
    "connector.class": "ElasticsearchSink",
    "connection.url": "http://search:9200",
    "connection.username": "shop",
    "connection.password": "swordfish",
    "topics": "orders",
}
CAPTURE = {
    "connector.class": "PostgresSource",
    "database.hostname": "db",
    "database.port": "5432",
    "database.password": "swordfish",
    "topic.prefix": "shop",
}
FILES = {
    "connector.class": "ObjectStoreSink",
    "store.url": "http://127.0.0.1:9000",
    "s3.bucket.name": "files",
    "aws.secret.access.key": "swordfish",
}
CLIENT = {
    "connector.class": "FileStreamSink",
    "consumer.override.bootstrap.servers": "kafka:9092",
    "consumer.override.security.protocol": "SASL_SSL",
    "consumer.override.sasl.jaas.config": "... password=swordfish;",
}
REGISTRY = {
    "connector.class": "FileStreamSink",
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
    "value.converter.basic.auth.user.info": "me:swordfish",
}


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        (JDBC, {"connection.url": "postgresql://stranger/shop"}),
        (JDBC, {"connector.class": "ElasticsearchSink"}),
        (ELASTIC, {"connection.url": "http://stranger:9200"}),
        (ELASTIC, {"connection.url": "http://search:9200,http://stranger:1"}),
        (ELASTIC, {"proxy.host": "stranger"}),
        (ELASTIC, {"elastic.security.protocol": "PLAINTEXT"}),
        (CAPTURE, {"database.hostname": "stranger"}),
        (CAPTURE, {"database.port": "1"}),
        (CAPTURE, {"database.sslmode": "disable"}),
        (FILES, {"store.url": "http://stranger:9000"}),
        (FILES, {"store.url": None}),
        (FILES, {"s3.region": "elsewhere"}),
        (CLIENT, {"consumer.override.bootstrap.servers": "stranger:9092"}),
        (CLIENT, {"consumer.override.security.protocol": "SASL_PLAINTEXT"}),
        (CLIENT, {"producer.override.bootstrap.servers": "stranger:9092"}),
        (REGISTRY, {"value.converter.schema.registry.url": "http://stranger:8081"}),
        (REGISTRY, {"what.nobody.knows": "stranger:8081"}),
    ],
)
def test_another_address_needs_the_secret_again(
    config: dict[str, str], changes: dict[str, str | None]
) -> None:
    seen = secrets.shown(PLUGINS, config)
    assert "swordfish" not in str(seen)
    told = {name: value for name, value in {**seen, **changes}.items() if value is not None}
    # As a whole configuration, in an update or in a preview.
    with pytest.raises(RefusalError, match="must be given again"):
        secrets.kept(PLUGINS, config, told)
    # As a patch: what it does not name is kept as well.
    merged = {**config, **changes}
    left = {name: value for name, value in merged.items() if value is not None}
    with pytest.raises(RefusalError, match="must be given again"):
        secrets.patched(PLUGINS, config, left, changes)


def test_without_another_address_secrets_are_kept_and_given_ones_go_anywhere() -> None:
    seen = secrets.shown(PLUGINS, JDBC)
    assert seen["connection.password"] == seen["connection.url"] == secrets.HIDDEN
    changes = {"tasks.max": "4", "topics": "a,b", "transforms": "x", "transforms.x.type": "Flatten"}
    assert secrets.kept(PLUGINS, JDBC, {**seen, **changes}) == {**JDBC, **changes}
    assert secrets.patched(PLUGINS, JDBC, {**JDBC, **changes}, changes) == {**JDBC, **changes}
    moved = {"connection.url": "postgresql://other/shop", "connection.password": "other"}
    assert secrets.kept(PLUGINS, JDBC, {**seen, **moved}) == {**JDBC, **moved}
    # A secret of which only the variable is known is what it was.
    variable = {**JDBC, "connection.password": "${env:X}"}
    assert secrets.shown(PLUGINS, variable)["connection.password"] == "${env:X}"
    assert secrets.shown(PLUGINS, {**JDBC, "connection.password": "a${b"})[
        "connection.password"
    ] == (secrets.HIDDEN)


def test_what_clients_keep_secret_is_hidden_whatever_stands_before_it() -> None:
    config = {
        "connector.class": "MirrorSource",
        "source.cluster.sasl.jaas.config": "password=swordfish;",
        "target.cluster.ssl.keystore.key": "swordfish",
        "admin.override.sasl.oauthbearer.client.secret": "swordfish",
    }
    assert "swordfish" not in str(secrets.shown(PLUGINS, config))


def test_what_says_no_address_is_none() -> None:
    before = {"tasks.max": "1", "poll.interval.ms": "5", "topics": "a", "errors.tolerance": "none"}
    after = {"tasks.max": "2", "topics.regex": "a.*", "errors.tolerance": "all", "support": "x"}
    assert changed_addresses(before, after) == []
