"""Decides which files of the worker's machine connectors may read and write.

Any user of a worker's REST interface can name files in a configuration. So a connector may use a
file only if it lies in a directory that the worker's properties name in `file.allowed.directories`;
without that setting it may use no files. Links and `..` are resolved before the check. The worker
sets the directories once, when its process starts.

A client's token of OAUTHBEARER comes from an URL. A file of it is such a file; a server has to be
named in the worker's `org.apache.kafka.sasl.oauthbearer.allowed.urls` (CVE-2025-27817).
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from common.credentials.jaas import ALLOWED_URLS, TOKEN_URL, parse_jaas
from millstream.connect.errors import ConfigException

SETTING: Final = "file.allowed.directories"
_NAMES_A_FILE: Final = re.compile(
    r"(^|\.)((\w*(ca|crl|key|keystore|truststore|certificate)\.)location|keytab"
    r"|\w*key\.file|template\.file|sslcert|sslkey|sslrootcert|sslcrl)$"
)
_LOGIN: Final = "sasl.jaas.config"
_allowed: tuple[str, ...] = ()
_allowed_urls: tuple[str, ...] = ()


def allow_directories(directories: Iterable[str], urls: Iterable[str] = ()) -> None:
    """Set what this process allows: directories, and URLs of tokens; replaces an earlier call."""
    global _allowed, _allowed_urls
    _allowed = tuple(each for each in directories if each)
    _allowed_urls = tuple(each.strip() for each in urls if each.strip())


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
        f"The worker's {SETTING} allows only files in {', '.join(_allowed)}"
        if roots
        else _NONE_ALLOWED,
    )


_NONE_ALLOWED: Final = (
    f"Connectors use files of this machine only if the worker was started with {SETTING} in its "
    "properties, which names directories; `millstream up` allows data/connect-files"
)


def file_mistakes(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Return, by setting, why a file that it names may not be read.

    Settings for keys, certificates and the like are found by name: the names are those of Kafka's
    clients, of schema registries and of database drivers.
    """
    found: dict[str, str] = {}
    for name, value in settings.items():
        try:
            _require_allowed(name, value or "")
        except ConfigException as error:
            found[name] = str(error)
    return found


def _require_allowed(name: str, value: str) -> None:
    if not value:
        return
    if _NAMES_A_FILE.search(name):
        allowed_path(name, value)
    elif _is_setting(name, TOKEN_URL):
        _require_allowed_url(name, value)
    elif _is_setting(name, ALLOWED_URLS):
        raise ConfigException(f"{name}: only the worker's properties say it")
    elif _is_setting(name, _LOGIN):
        _require_allowed_key(name, value)


def _is_setting(name: str, setting: str) -> bool:
    return name == setting or name.endswith(f".{setting}")


def _require_allowed_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigException.of_value(name, url[:200], str(error)) from None
    if url in _allowed_urls:
        return
    if parts.scheme == "file":
        allowed_path(name, unquote(parts.path))
        return
    raise ConfigException.of_value(
        name, url[:200], f"The worker's {ALLOWED_URLS} allows no such address"
    )


def _require_allowed_key(name: str, jaas: str) -> None:
    try:
        options = parse_jaas(jaas).options
    except ValueError:
        return  # Where the login is used it is refused.
    if options.get("keyTab"):
        allowed_path(name, options["keyTab"].removeprefix("file://"))


def require_files(settings: Mapping[str, str | None]) -> None:
    """Raises ConfigException when a configuration names a key or certificate it may not read."""
    for wrong in file_mistakes(settings).values():
        raise ConfigException(wrong)
