"""Runs each command: it sends requests to the worker and prints the answers."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from common.process.json_text import NotJsonError, read_json
from connect.client import tables
from connect.client.rest import ClientError, ConnectRest
from connect.client.tables import cell, table
from connect.connector_file import read_connector_file, read_text
from millstream.connect.errors import ConfigException

_PARTS = (
    "topic",
    "partition",
    "timestamp",
    "key",
    "key_schema",
    "value",
    "value_schema",
    "headers",
)
_ALWAYS = ("topic", "key", "value")


def preview_text(said: Mapping[str, Any]) -> str:
    """Give the lines of a preview."""
    blocks = [_record(number, each) for number, each in enumerate(said["records"], 1)]
    if "error" in said:
        blocks.append(f"failed: {_error(said['error'])}")
    count = len(said["records"])
    shown = "1 record" if count == 1 else f"{count} records"
    blocks.append(f"{shown}, nothing written: {said['ended']}")
    return "\n\n".join(blocks)


def _record(number: int, record: Mapping[str, Any]) -> str:
    rows = [("read", *row) for row in _parts(record["read"], _ALWAYS)]
    for step in record["steps"]:
        rows += [(step["step"], *row) for row in _step(step)]
    return f"record {number}: {record['outcome']}\n" + table(("STEP", "PART", "VALUE"), rows)


def _step(step: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    if "error" in step:
        yield "failed", _error(step["error"])
    elif "left_out" in step:
        yield "left out", step["left_out"]
    elif step.get("applied") is False:
        yield "left out", "its predicate does not hold"
    elif "changed" not in step:
        # What is filtered has no result, what is converted nothing it could be compared with.
        yield from _parts(step["result"], _ALWAYS) if "result" in step else [("filtered", None)]
    elif not step["changed"]:
        yield "unchanged", None
    else:
        yield from _parts(step["result"], step["changed"])


def _parts(shown: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, object]]:
    for name in _PARTS:
        if name in names and name in shown:
            yield name, _plain(shown[name])


def _plain(value: Any) -> object:
    """Take the text of bytes that are one."""
    is_text = isinstance(value, Mapping) and set(value) == {"text"}
    return value["text"] if is_text else value


def _error(error: Mapping[str, Any]) -> str:
    return cell(f"{error['class']}: {error['message']} ({error['stage']})")


Options = argparse.Namespace
_CLASS: Final = "connector.class"
_INITIAL: Final = {"STARTED": "RUNNING"}


class Desk:
    """One worker to ask, and how to print what it says."""

    def __init__(self, options: Options) -> None:
        self.rest = ConnectRest(options.url)
        self._is_json: bool = options.json

    def show(self, said: Any, text: str) -> None:
        """Print an answer: its JSON with `--json`, otherwise `text`."""
        print_out(json.dumps(said, indent=2, ensure_ascii=False) if self._is_json else text)

    def tell(self, text: str) -> None:
        """Print what was done, unless `--json` is given: the exit status tells it."""
        if not self._is_json:
            print_out(text)


def print_out(text: str) -> None:
    # Half of a surrogate pair, which JSON may hold, is nothing a terminal can show.
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def run_command(options: Options) -> int:
    """Do one command; 1 when the worker refuses, is not there or shows a failure."""
    try:
        return COMMANDS[options.command](Desk(options), options)
    except (ClientError, ConfigException) as error:
        sys.stderr.write(f"millstream connect: {tables.block(str(error))}\n")
        return 1


# --- asking ---


def show_list(desk: Desk, options: Options) -> int:
    del options
    said = desk.rest.ask("GET", "connectors", query={"expand": ["status", "info"]})
    desk.show(said, tables.connectors_table(said))
    return 0


def show_status(desk: Desk, options: Options) -> int:
    said = desk.rest.ask("GET", "connectors", options.connector, "status")
    desk.show(said, tables.status_text(said))
    return 1 if tables.has_failed(said) else 0


def show_tasks(desk: Desk, options: Options) -> int:
    said = desk.rest.ask("GET", "connectors", options.connector, "tasks")
    desk.show(said, tables.tasks_table(said))
    return 0


def show_topics(desk: Desk, options: Options) -> int:
    path = ("connectors", options.connector, "topics")
    if options.reset:
        desk.rest.ask("PUT", *path, "reset")
        desk.tell(f"the topics of {tables.cell(options.connector)} are forgotten")
        return 0
    said = desk.rest.ask("GET", *path)
    rows = [(topic,) for topic in said[options.connector]["topics"]]
    desk.show(said, tables.table(("TOPIC",), rows))
    return 0


def show_offsets(desk: Desk, options: Options) -> int:
    path = ("connectors", options.connector, "offsets")
    if options.reset:
        return _tell(desk, desk.rest.ask("DELETE", *path))
    if options.alter is not None:
        return _tell(desk, desk.rest.ask("PATCH", *path, body=_json_file(options.alter)))
    said = desk.rest.ask("GET", *path)
    desk.show(said, tables.offsets_table(said))
    return 0


def _tell(desk: Desk, said: Mapping[str, Any]) -> int:
    desk.show(said, tables.block(said["message"]))
    return 0


def _json_file(path: Path) -> Any:
    try:
        return read_json(read_text(path))
    except NotJsonError as error:
        raise ConfigException(f"file {path} is no JSON: {error}") from error


def validate(desk: Desk, options: Options) -> int:
    name, config, _ = read_connector_file(options.file)
    said = desk.rest.ask(
        "PUT", "connector-plugins", _class(config), "config", "validate", body=config
    )
    good = f"{tables.cell(name)}: nothing is wrong"
    desk.show(said, tables.mistakes_table(said) if said["error_count"] else good)
    return 1 if said["error_count"] else 0


def preview(desk: Desk, options: Options) -> int:
    _, config, _ = read_connector_file(options.file)
    said = desk.rest.ask("POST", "connector-plugins", _class(config), "preview", body=config)
    desk.show(said, preview_text(said))
    is_bad = "error" in said or any(each["outcome"] == "failed" for each in said["records"])
    return 1 if is_bad else 0


def _class(config: Mapping[str, Any]) -> str:
    name = config.get(_CLASS)
    if not isinstance(name, str) or not name:
        raise ConfigException(f"the configuration does not say `{_CLASS}`")
    return name


# --- changing ---


def create(desk: Desk, options: Options) -> int:
    name, config, state = read_connector_file(options.file)
    body: dict[str, Any] = {"name": name, "config": config}
    if options.state is not None:
        body["initial_state"] = options.state.upper()
    elif state is not None:
        body["initial_state"] = _INITIAL.get(state.value, state.value)
    said = desk.rest.ask("POST", "connectors", body=body)
    desk.show(said, f"created {tables.cell(said['name'])}, a {said['type']}")
    return 0


def config(desk: Desk, options: Options) -> int:
    path = ("connectors", options.connector, "config")
    if options.file is not None and (options.set or options.remove):
        raise ConfigException("--file replaces all settings: give either it, or --set and --remove")
    if options.file is not None:
        _, whole, _ = read_connector_file(options.file)
        said = desk.rest.ask("PUT", *path, body=whole)["config"]
    elif options.set or options.remove:
        said = desk.rest.ask("PATCH", *path, body=_patch(options))["config"]
    else:
        said = desk.rest.ask("GET", *path)
    desk.show(said, tables.settings_table(said))
    return 0


def _patch(options: Options) -> dict[str, str | None]:
    patch: dict[str, str | None] = dict.fromkeys(options.remove)
    for each in options.set:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ConfigException(f"--set takes SETTING=VALUE, not {each}")
        patch[name] = value
    return patch


def _for_each(method: str, *then: str, done: str) -> Callable[[Desk, Options], int]:
    def command(desk: Desk, options: Options) -> int:
        for name in options.connectors:
            desk.rest.ask(method, "connectors", name, *then)
            desk.tell(f"{done} {tables.cell(name)}")
        return 0

    return command


def restart(desk: Desk, options: Options) -> int:
    path: tuple[str, ...] = ("connectors", options.connector)
    shown = tables.cell(options.connector)
    if options.task is not None:
        if options.include_tasks or options.only_failed:
            raise ConfigException("--task goes with neither --include-tasks nor --only-failed")
        desk.rest.ask("POST", *path, "tasks", str(options.task), "restart")
        desk.tell(f"restarted task {options.task} of {shown}")
        return 0
    query = {
        "includeTasks": str(options.include_tasks).lower(),
        "onlyFailed": str(options.only_failed).lower(),
    }
    said = desk.rest.ask("POST", *path, "restart", query=query)
    if said is None:
        desk.tell(f"restarted {shown}")
    else:
        desk.show(said, tables.status_text(said))
    return 0


# --- the worker ---


def plugins(desk: Desk, options: Options) -> int:
    if options.plugin is not None:
        said = desk.rest.ask("GET", "connector-plugins", options.plugin, "config")
        desk.show(said, tables.plugin_table(said))
        return 0
    query = {"connectorsOnly": str(not options.all).lower()}
    said = desk.rest.ask("GET", "connector-plugins", query=query)
    desk.show(said, tables.plugins_table(said))
    return 0


def loggers(desk: Desk, options: Options) -> int:
    path: tuple[str, ...] = ("admin", "loggers")
    if options.level is not None:
        name = options.logger or "root"
        query = {"scope": options.scope}
        said = desk.rest.ask("PUT", *path, name, body={"level": options.level}, query=query)
        if said is None:
            desk.tell(f"{tables.cell(name)} is set to {options.level.upper()} at every worker")
        else:
            rows = [(each, options.level.upper()) for each in said]
            desk.show(said, tables.table(("LOGGER", "LEVEL"), rows))
        return 0
    if options.logger is not None:
        said = desk.rest.ask("GET", *path, options.logger)
        desk.show(said, tables.loggers_table({options.logger: said}))
        return 0
    said = desk.rest.ask("GET", *path)
    desk.show(said, tables.loggers_table(said))
    return 0


def worker(desk: Desk, options: Options) -> int:
    del options
    said = {**desk.rest.ask("GET"), **desk.rest.ask("GET", "health")}
    rows = [(name.replace("_", " "), value) for name, value in said.items()]
    desk.show(said, tables.table(("WORKER", desk.rest.shown), rows))
    return 0


COMMANDS: Final[Mapping[str, Callable[[Desk, Options], int]]] = {
    "list": show_list,
    "status": show_status,
    "tasks": show_tasks,
    "topics": show_topics,
    "offsets": show_offsets,
    "validate": validate,
    "preview": preview,
    "create": create,
    "config": config,
    "pause": _for_each("PUT", "pause", done="paused"),
    "resume": _for_each("PUT", "resume", done="resumed"),
    "stop": _for_each("PUT", "stop", done="stopped"),
    "delete": _for_each("DELETE", done="deleted"),
    "restart": restart,
    "plugins": plugins,
    "loggers": loggers,
    "worker": worker,
}
