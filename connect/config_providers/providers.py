"""Config providers for files, directories and the environment, under Kafka's names.

Any user of the REST interface can write paths into a configuration. So `allowed.paths` limits them;
a path is compared as written, without resolving links, since mounted secrets are links. Without
that setting only files in the worker's `file.allowed.directories` are read. Only regular files of
at most MAX_FILE_BYTES are read. A file that is not allowed or missing has no values, and the
variable stays as it is.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from common.process.properties import parse_properties
from connect.local_files import allowed_path
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import ConfigProvider

logger = logging.getLogger(__name__)
MAX_FILE_BYTES = 1 << 20
_Value = TypeVar("_Value")
_PACKAGE = "org.apache.kafka.common.config.provider"


class _PathProvider(ConfigProvider):
    """A provider whose paths are paths of files."""

    def __init__(self) -> None:
        self._allowed: list[Path] | None = None

    def configure(self, configs: Mapping[str, Any]) -> None:
        text = configs.get("allowed.paths")
        self._allowed = [_existing(one) for one in text.split(",")] if text else None

    def allowed(self, path: str) -> Path | None:
        """Return the path to read, None when it must not be read or there is none."""
        if not path or "\0" in path:
            return None
        if self._allowed is None:
            try:
                return Path(allowed_path("allowed.paths", path))
            except ConfigException as error:
                logger.warning("path is not allowed error=%s", error)
                return None
        normalized = Path(os.path.normpath(path))
        if any(normalized.is_relative_to(one) for one in self._allowed):
            return normalized
        logger.warning("path is not allowed path=%s", path)
        return None


class FileConfigProvider(_PathProvider):
    """The values of a properties file: ${file:/run/secrets/db.properties:password}."""

    kafka_class = f"{_PACKAGE}.FileConfigProvider"

    def get(self, path: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        allowed = self.allowed(path)
        if allowed is None:
            return {}
        try:
            properties = parse_properties(_text(allowed))
        except ValueError as error:
            message = f"Could not read properties from file {allowed}: {error}"
            raise ConfigException(message) from error
        return properties if keys is None else _only(properties, keys)


class DirectoryConfigProvider(_PathProvider):
    """The files of a directory, by their names: ${directory:/run/secrets:password}."""

    kafka_class = f"{_PACKAGE}.DirectoryConfigProvider"

    def get(self, path: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        allowed = self.allowed(path)
        if allowed is None:
            return {}
        if not allowed.is_dir():
            logger.warning("path is not a directory path=%s", path)
            return {}
        try:
            files = {one.name: one for one in allowed.iterdir() if one.is_file()}
        except OSError as error:
            raise ConfigException(f"Could not list directory {path}") from error
        wanted = files if keys is None else _only(files, keys)
        return {name: _text(file) for name, file in wanted.items()}


class EnvVarConfigProvider(ConfigProvider):
    """The worker's environment: ${env:DB_PASSWORD}; `allowlist.pattern` limits the names."""

    kafka_class = f"{_PACKAGE}.EnvVarConfigProvider"

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._variables = dict(environment)

    def configure(self, configs: Mapping[str, Any]) -> None:
        pattern = str(configs.get("allowlist.pattern", ".*"))
        try:
            allowed = re.compile(pattern)
        except re.error as error:
            raise ConfigException.of_value("allowlist.pattern", pattern, str(error)) from error
        self._variables = {
            name: value for name, value in self._variables.items() if allowed.fullmatch(name)
        }

    def get(self, path: str, keys: Iterable[str] | None = None) -> dict[str, str]:
        if path:
            raise ConfigException(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        return dict(self._variables) if keys is None else _only(self._variables, keys)


CONFIG_PROVIDERS: tuple[type[ConfigProvider], ...] = (
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
)


def _only(values: Mapping[str, _Value], keys: Iterable[str]) -> dict[str, _Value]:
    return {key: values[key] for key in keys if key in values}


def _existing(text: str) -> Path:
    path = Path(os.path.normpath(text))
    if not path.is_absolute():
        raise ConfigException(f"Path {path} is not absolute")
    if not path.exists():
        raise ConfigException(f"Path {path} does not exist")
    return path


def _text(path: Path) -> str:
    try:
        # Not a device or a pipe: reading one may never end.
        if not path.is_file():
            raise ConfigException(f"Could not read properties from file {path}")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigException(f"More than {MAX_FILE_BYTES} bytes in file {path}")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"Could not read properties from file {path}") from error
