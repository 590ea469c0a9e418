"""The settings of every program, read from the tables and the parsers that the programs use.

`page_text` is the text of docs/settings.md. The range of a setting is what the program answers to
a value outside of it.
"""

import argparse
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import broker.cli.faults
import console.settings
import lag.command
import mirror.__main__
import schemas.registry.__main__
from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import OF_ONE_BROKER, WITHOUT_EFFECT, acts
from broker.config.known_settings import KNOWN_SETTINGS
from broker.log.topic_settings import TOPIC_SETTINGS
from broker.metadata.control.group_limits import CHOICES, GROUP_LIMITS
from broker.metadata.control.settings import client_metrics
from broker.server.settings import config_entries, descriptions
from common.kafka.errors import KafkaError
from common.process.settings import read_settings
from common.processing.settings import Settings as ServiceSettings
from connect.worker import settings as worker_settings
from millstream.connect.config.config_def import ConfigDef, ConfigKey
from millstream.connect.config.types import Type
from mirror import definitions
from rest_proxy.settings import KNOWN, Settings, SettingsError
from spark_analytics.jobs.settings import JobSettings
from spark_analytics.settings import Settings as DashboardSettings
from streams.settings import Settings as StreamsSettings

_START = """# Settings of every program

Brokers, topics, groups, workers of Connect, the mirror and the REST proxy read properties; their
settings have the names of Apache Kafka and Confluent. The other programs have options.
`-` is null, `""` is the empty text, `(required)` has no default. A number without a range takes
every value of its type.

[Defaults beside Apache Kafka's](defaults.md) says where a default is not Kafka's.
[Settings of connectors and converters](connector-settings.md) are on pages of their own.
[Security of programs](security-programs.md) describes the files that `--command-config` and
`--http-config` name.

This page is made from the code: `REWRITE=1 python -m pytest tests/test_settings_reference.py`
writes it.
"""
_SECURED = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://localhost/keys",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "https://localhost/keys",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
}
"""A node that reads settings which others leave unread."""
_OF_SERVICES = (
    "Each is an option of `millstream service NAME`, and a variable. `KAFKA_BOOTSTRAP_SERVERS` and "
    "`SCHEMA_REGISTRY_URL`, which `millstream up` prints, are read too."
)
_BOOLEAN = "true or false"
_LOWEST = {"SHORT": -(2**15), "INT": -(2**31), "LONG": -(2**63), "DOUBLE": -1}


class Row(NamedTuple):
    """A row of the page."""

    name: str
    kind: str
    default: str
    range: str
    about: str
    more: str = ""
    """Whether it changes while a broker runs, or the variable that gives an option."""


class Section(NamedTuple):
    """The settings of one program, or a part of them."""

    title: str
    about: str
    rows: list[Row]
    more: str = ""
    """The heading of the last column, if the rows have it."""


def shown(value: Any) -> str:
    """Return a default as the page shows it."""
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case list() | tuple():
            return ", ".join(map(str, value)) or '""'
        case _:
            return str(value) or '""'


# --- brokers, topics and groups ---


def refusal(name: str, check: Callable[[], object]) -> str:
    """Return what a check says about a value of the setting, without the value; or nothing."""
    try:
        check()
    except (KafkaError, SettingsError) as error:
        text = str(getattr(error, "message", error))
    else:
        return ""
    said = re.match(
        rf"(?:Invalid value \S+ for configuration [\w.]+: |{re.escape(name)}(?:=\S*)?:? )(.*)", text
    )
    # A text that repeats the value, or what the node has, tells nothing about others.
    if said is None or "?" in said[1] or "([" in said[1]:
        return ""
    return re.sub(r"^(?:(?:\w+ )?must be (?:one of: )?|expected |there are )", "", said[1])


def _wrong(kind: str) -> str:
    return str(_LOWEST.get(kind, "?"))


def _broker_range(name: str) -> str:
    kind = KNOWN_SETTINGS[name].type
    if kind == "BOOLEAN":
        return _BOOLEAN
    wrong = {name: _wrong(kind)}
    tried = [{**_SECURED, **wrong}, wrong]
    said = [refusal(name, lambda given=given: BrokerConfig.from_settings(given)) for given in tried]
    return next(filter(None, said), "")


def _changes(name: str) -> str:
    if name in WITHOUT_EFFECT:
        return "no, but a change is taken"
    if not acts(name):
        return "for a listener" if acts(f"listener.name.a.{name}") else "no"
    return "for each broker" if name in OF_ONE_BROKER else "yes"


def _described(
    configs: Iterable[config_entries.DescribedConfig], range_of: Callable[[str], str]
) -> list[Row]:
    kinds = {number: kind for kind, number in config_entries.CONFIG_TYPES.items()}
    return [
        Row(
            each.name,
            kinds[each.config_type],
            shown(each.value),
            range_of(each.name),
            descriptions._documentation(each) or "",
        )
        for each in configs
    ]


def _topic_range(name: str) -> str:
    setting = TOPIC_SETTINGS[name]
    if setting.type.name == "BOOLEAN":
        return _BOOLEAN
    return refusal(name, lambda: setting.parse(_wrong(setting.type.name)))


def _group_range(name: str) -> str:
    if name in CHOICES:
        return ", ".join(CHOICES[name])
    limit = GROUP_LIMITS.get(name)
    return "" if limit is None else f"between {limit.lowest} and {limit.highest}"


def _subscription_range(name: str) -> str:
    limits = f"between {client_metrics.MIN_INTERVAL_MS} and {client_metrics.MAX_INTERVAL_MS}"
    return limits if name == client_metrics.INTERVAL else ""


def _of_brokers() -> Iterator[Section]:
    config = BrokerConfig.from_settings({})
    brokers = _described(config_entries.describe_broker(config, {}, {}), _broker_range)
    yield Section(
        "A broker and a controller",
        "`millstream broker start` reads them from `server.properties`, from variables as "
        "`KAFKA_LOG_DIRS`, and from `--override`. While a broker runs, `millstream configs --alter "
        "--entity-type brokers` changes some: for all brokers or one (yes), for each broker, or "
        "behind the prefix `listener.name.NAME.` (for a listener). A change of others is taken, "
        "and [does nothing](dynamic-settings.md). No other setting changes.",
        [each._replace(more=_changes(each.name)) for each in brokers],
        "changes while running",
    )
    yield Section(
        "A topic",
        "All of them change while the brokers run.",
        _described(config_entries.describe_topic(config, {}), _topic_range),
    )
    yield Section(
        "A group",
        "All of them change while the brokers run. The settings `group.*.min.*` and "
        "`group.*.max.*` of the brokers move the ranges.",
        _described(config_entries.describe_group(config, {}, {}, {}), _group_range),
    )
    yield Section(
        "A subscription to clients' metrics",
        "All of them change while the brokers run. [More about it](client-metrics.md).",
        _described(config_entries.describe_client_metrics({}), _subscription_range),
    )


# --- programs that read properties ---


def _of_definition(definition: ConfigDef, without: Iterable[str] = ()) -> list[Row]:
    return [
        Row(
            each.name,
            each.type.name,
            shown(each.default) if each.has_default else "(required)",
            _valid(each),
            each.documentation,
        )
        for each in sorted(definition.keys.values(), key=lambda key: key.name)
        if each.name not in without
    ]


def _valid(key: ConfigKey) -> str:
    if key.type == Type.BOOLEAN:
        return _BOOLEAN
    text = re.sub(r"[\[\]]", "", "" if key.validator is None else str(key.validator))
    return re.sub(r"^(-?\d+),\.\.\.$", r"at least \1", text)


def _of_connect() -> Iterator[Section]:
    own, cluster = worker_settings.STANDALONE, worker_settings.DISTRIBUTED
    about = "`millstream connect start` reads them from the worker's properties file. {}"
    only = own.keys.keys() - cluster.keys.keys()
    yield Section(
        "A worker of Connect in a cluster",
        about.format("`producer.`, `consumer.` and `admin.` begin settings of its clients."),
        _of_definition(cluster),
    )
    yield Section(
        "A worker of Connect that is alone",
        about.format("Without `group.id` these come instead of those of a cluster."),
        _of_definition(own, own.keys.keys() - only),
    )


def _of_mirror() -> Iterator[Section]:
    about = "In `mm2.properties` a flow's own setting begins with its name: `a->b.topics`."
    before: set[str] = set()
    parts = ("SOURCE", "copying"), ("CHECKPOINT", "checkpoints"), ("HEARTBEAT", "heartbeats")
    for name, does in parts:
        definition = getattr(definitions, name)
        yield Section(f"The mirror, {does}", about, _of_definition(definition, before))
        before |= definition.keys.keys()
        about = "Beside those above that all of the mirror's connectors have."


def _rest_range(name: str) -> str:
    if KNOWN[name].default in ("true", "false"):
        return _BOOLEAN
    if not KNOWN[name].default.lstrip("-").isdigit():
        return ""
    said = refusal(name, lambda: Settings.of({name: "0"}))
    return said or f"at least {0 if refusal(name, lambda: Settings.of({name: '-1'})) else -1}"


def _of_rest_proxy() -> Section:
    kinds = {"at": "INT", "1 ": "INT", "tr": "BOOLEAN", "": "STRING"}
    rows = [
        Row(name, kinds[_rest_range(name)[:2]], shown(each.default), _rest_range(name), each.what)
        for name, each in sorted(KNOWN.items())
    ]
    about = (
        "`millstream rest-proxy` reads them from the file of `--config`, from variables as "
        "`KAFKA_REST_BOOTSTRAP_SERVERS`, and from `--override`. `client.`, `producer.`, "
        "`consumer.` and `admin.` begin settings of its clients of Kafka."
    )
    return Section("The REST proxy", about, rows)


# --- programs with options ---


class _ParserFoundError(Exception):
    pass


def _parser_of(read: Callable[[], object], variable: Callable[..., Any]) -> dict[str, Any]:
    """Return the options of a program, which asks for its variables by `variable`."""
    found: list[argparse.ArgumentParser] = []

    def parse(parser: argparse.ArgumentParser, *_: object) -> None:
        found.append(parser)
        raise _ParserFoundError

    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse),
        mock.patch.object(type(os.environ), "get", variable, create=True),
        suppress(_ParserFoundError),
    ):
        read()
    return {
        (action.option_strings or [action.dest])[-1]: action
        for action in found[0]._actions
        if action.dest != "help"
    }


def _of_options(title: str, about: str, read: Callable[[], object]) -> Section:
    plain = _parser_of(read, lambda _environment, _name, default=None: default)
    named = _parser_of(read, lambda _environment, name, default=None: name or default)
    rows = []
    for name, option in plain.items():
        variable = named[name].default
        rows.append(
            Row(
                name,
                _kind(option),
                shown(option.default),
                ", ".join(map(str, option.choices or ())),
                option.help,
                "" if variable == option.default else f"`{variable}`",
            )
        )
    return Section(title, about, rows, "variable")


def _kind(option: argparse.Action) -> str:
    if option.nargs == 0:
        return "flag"
    names = {int: "whole number", float: "number"}
    kind = names.get(option.type, "text")  # type: ignore[arg-type]
    return f"{kind}, {option.metavar}" if isinstance(option.metavar, str) else kind


def _of_class(kind: Any, title: str, about: str) -> Section:
    return _of_options(title, about, lambda: read_settings(kind, "", "", [], os.environ))


def _of_services() -> Iterator[Section]:
    common = _of_class(ServiceSettings, "Every service of the pipeline", _OF_SERVICES)
    yield common
    services = Path(importlib.import_module("services").__path__[0])
    for folder in sorted(each.parent.name for each in services.glob("*/__main__.py")):
        kind = importlib.import_module(f"services.{folder}.__main__").SERVICE.settings
        told = _of_class(kind, f"The service {folder}", "Beside those of every service.")
        own = [each for each in told.rows if each not in common.rows]
        if own:
            yield told._replace(rows=own)


def sections() -> Iterator[Section]:
    """Yield the settings of each program."""
    yield from _of_brokers()
    yield from _of_connect()
    yield from _of_mirror()
    yield _of_options(
        "The mirror's command",
        "`millstream mirror`",
        lambda: mirror.__main__.parse_arguments([]),
    )
    yield _of_options(
        "The schema registry",
        "`millstream registry`",
        lambda: schemas.registry.__main__.parse_arguments([]),
    )
    yield _of_rest_proxy()
    yield _of_options(
        "The console", "`millstream console`", lambda: console.settings.read_settings([])
    )
    yield _of_options("The lag monitor", "`millstream lag`", lambda: lag.command.main([]))
    yield _of_options(
        "The proxy with faults", "`millstream faults`", lambda: broker.cli.faults.main([])
    )
    yield from _of_services()
    yield _of_class(StreamsSettings, "Streams", "`millstream streams`")
    yield _of_class(JobSettings, "The Spark job", "`millstream spark-job`")
    yield _of_class(DashboardSettings, "The dashboard", "`millstream dashboard`")


def page_text(found: Iterable[Section]) -> str:
    """Return the page."""
    text = _START
    for title, about, rows, more in found:
        heads = ["setting", "type", "default", "range", "what it does", *([more] if more else [])]
        text += f"\n## {title}\n\n{about}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
        for row in rows:
            cells = [f"`{row.name}`", row.kind, _code(row.default), row.range, row.about, row.more]
            cut = [each.replace("|", "\\|").replace("\n", " ") for each in cells[: len(heads)]]
            text += f"| {' | '.join(cut)} |\n"
    return text


def _code(text: str) -> str:
    return text if text in ("-", "(required)") else f"`{text}`"
