"""Decides which files of the worker's machine connectors may read and write.

Any user of a worker's REST interface can name files in a configuration. So a connector may use a
file only if it lies in a directory that the worker's properties name in `file.allowed.directories`;
without that setting it may use no files. Links and `..` are resolved before the check. The worker
sets the directories once, when its process starts.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from millrace.connect.errors import ConfigException

SETTING: Final = "file.allowed.directories"
_NAMES_A_FILE: Final = re.compile(
    r"(^|\.)((\w*(ca|crl|key|keystore|truststore|certificate)\.)location|keytab"
    r"|\w*key\.file|template\.file|sslcert|sslkey|sslrootcert|sslcrl)$"
)
_allowed: tuple[str, ...] = ()


def allow_directories(directories: Iterable[str]) -> None:
    """Set the allowed directories of this process; replaces those of an earlier call."""
    global _allowed
    _allowed = tuple(each for each in directories if each)


def allowed_path(setting: str, path: str) -> str:
    """Return the path of a file with its links resolved.

    Raises ConfigException, which names the setting, when the file is in no allowed directory.
    """
    try:
        real = os.path.realpath(path)
        roots = [os.path.realpath(each) for each in _allowed]
    except (OSError, ValueError) as error:
        raise ConfigException.of_value(setting, path[:200], str(error)) from None
    if any(root == os.path.commonpath((root, real)) for root in roots):
        return real
    raise ConfigException.of_value(
        setting,
        path[:200],
        f"The worker's {SETTING} allows no such file" if roots else _NONE_ALLOWED,
    )


_NONE_ALLOWED: Final = (
    f"Connectors use no files of this machine until the worker's {SETTING} names the directories"
)


def file_mistakes(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Return, by setting, why a file that it names may not be read.

    Settings for keys, certificates and the like are found by name: the names are those of Kafka's
    clients, of schema registries and of database drivers.
    """
    found: dict[str, str] = {}
    for name, value in settings.items():
        if value and _NAMES_A_FILE.search(name):
            try:
                allowed_path(name, value)
            except ConfigException as error:
                found[name] = str(error)
    return found


def require_files(settings: Mapping[str, str | None]) -> None:
    """Raises ConfigException when a configuration names a key or certificate it may not read."""
    for wrong in file_mistakes(settings).values():
        raise ConfigException(wrong)
