"""Reads a connector's file: its name, its configuration and its initial state."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from common.process.json_text import NotJsonError, read_json
from common.process.properties import parse_properties
from connect.herder.names import TargetState
from millstream.connect.errors import ConfigException

STANDARD_INPUT: Final = Path("-")


def read_text(path: Path) -> str:
    """Read a file; the path `-` stands for standard input. Raises ConfigException."""
    try:
        return sys.stdin.read() if path == STANDARD_INPUT else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"file {path} cannot be read: {error}") from error


def read_connector_file(path: Path) -> tuple[str, dict[str, Any], TargetState | None]:
    """Read a connector's name, configuration and initial state. Raises ConfigException.

    The file is a properties file or JSON. The JSON is either the configuration alone or the body
    of a POST /connectors. The path `-` stands for JSON on standard input.
    """
    text = read_text(path)
    if path.suffix.lower() != ".json" and path != STANDARD_INPUT:
        try:
            return _named(path, parse_properties(text), None)
        except ValueError as error:
            raise ConfigException(f"connector file {path} is malformed: {error}") from error
    try:
        said = read_json(text)
    except NotJsonError as error:
        raise ConfigException(f"connector file {path} is no JSON: {error}") from error
    if not isinstance(said, dict):
        raise ConfigException(f"connector file {path} holds no JSON object")
    if not isinstance(said.get("config"), dict):
        return _named(path, said, None)
    state = said.get("initial_state")
    name = {"name": said["name"]} if "name" in said else {}
    return _named(path, {**name, **said["config"]}, read_initial_state(state))


def read_initial_state(said: object) -> TargetState | None:
    """Read the field `initial_state` of a POST /connectors. Raises ConfigException."""
    if said is None:
        return None
    states = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED}
    found = {**states, "STOPPED": TargetState.STOPPED}.get(str(said).upper())
    if found is None:
        raise ConfigException(
            f"No enum constant ConnectorInitialState.{said}: RUNNING, PAUSED or STOPPED"
        )
    return found


def _named(
    path: Path, config: Mapping[str, Any], state: TargetState | None
) -> tuple[str, dict[str, Any], TargetState | None]:
    name = config.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigException(f"connector file {path} does not say `name`")
    return name, dict(config), state
