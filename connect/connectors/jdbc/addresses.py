"""Translate addresses of databases, JDBC URLs and SQLAlchemy's, for SQLAlchemy. Does no IO.

A parameter of a JDBC URL is translated, or ignored if it only tunes the driver. With any other
parameter the address is refused: without it the driver would not do what the user asked for.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from millstream.connect import ConfigException

_URL: Final = "connection.url"
_SCHEMES: Final = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}

_SAME: Final = {
    # JDBC's names and libpq's. (Source: PostgreSQL's driver for Java, "Connection Parameters".)
    "ApplicationName": "application_name",
    "sslmode": "sslmode",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslrootcert": "sslrootcert",
    "sslpassword": "sslpassword",
    "channelBinding": "channel_binding",
    "gssEncMode": "gssencmode",
    "kerberosServerName": "krbsrvname",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
}
_SERVERS: Final = {
    "any": "any",
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "preferSecondary": "prefer-standby",
    "preferSlave": "prefer-standby",
}
_TUNES_POSTGRESQL: Final = """
adaptiveFetch adaptiveFetchMaximum adaptiveFetchMinimum assumeMinServerVersion autosave
binaryTransfer binaryTransferDisable binaryTransferEnable cancelSignalTimeout cleanupSavepoints
databaseMetadataCacheFields databaseMetadataCacheFieldsMiB defaultRowFetchSize
disableColumnSanitiser groupStartupParameters hostRecheckSeconds logUnclosedConnections loggerFile
loggerLevel maxResultBuffer maxSendBufferSize preferQueryMode prepareThreshold
preparedStatementCacheQueries preparedStatementCacheSizeMiB protocolVersion
quoteReturningIdentifiers reWriteBatchedInserts readOnlyMode receiveBufferSize sendBufferSize
socketTimeout sslResponseTimeout stringtype tcpKeepAlive tcpNoDelay unknownLength
"""
"""`stringtype` has no effect: strings are sent without a type, and fit into any column."""
_TUNES_MYSQL: Final = """
allowPublicKeyRetrieval autoReconnect cachePrepStmts cacheServerConfiguration characterEncoding
elideSetAutoCommits maintainTimeStats nullCatalogMeansCurrent prepStmtCacheSize
prepStmtCacheSqlLimit rewriteBatchedStatements tcpKeepAlive useLocalSessionState useServerPrepStmts
useUnicode
"""
_TUNES: Final = {
    "postgresql": frozenset(_TUNES_POSTGRESQL.split()),
    "mysql": frozenset(_TUNES_MYSQL.split()),
}
_TRUSTING: Final = "org.postgresql.ssl.NonValidatingFactory"


class Address(NamedTuple):
    """The URL of a database, further arguments for its driver, and ignored parameters."""

    url: URL
    arguments: dict[str, Any]
    left_out: tuple[str, ...] = ()


def address_of(text: str) -> Address:
    """Parse an address.

    Raise ConfigException, whose message does not contain the address: it may hold a password.
    """
    try:
        if not text.startswith("jdbc:"):
            return _of_sqlalchemy(text)
        name, _, rest = text.removeprefix("jdbc:").partition(":")
        if name == "sqlite":
            return _of_sqlite(rest)
        if name in _SCHEMES:
            return _of_server(name, rest)
    except (ArgumentError, ValueError):
        raise ConfigException.of_value(_URL, "[hidden]", "no URL") from None
    raise ConfigException(
        f"{_URL}: JDBC URLs are supported for postgresql, mysql, mariadb and sqlite; for "
        f"{name[:40]} give SQLAlchemy's URL, with its driver installed"
    )


def _of_sqlalchemy(text: str) -> Address:
    name, colon, rest = text.partition(":")
    url = make_url(f"{_SCHEMES.get(name, name)}{colon}{rest}")
    if url.get_backend_name() == "postgresql":
        unknown = sorted(set(url.query) - _libpq_names() - {"user", "password", "host", "port"})
        _refuse(unknown, "are not parameters of libpq")
    return Address(url, {})


def _of_sqlite(rest: str) -> Address:
    path, _, query = rest.partition("?")
    _refuse([name for name, _ in parse_qsl(query)], "are not known for SQLite")
    return Address(make_url(f"sqlite:{path}" if path.startswith("//") else f"sqlite:///{path}"), {})


def _of_server(name: str, rest: str) -> Address:
    where, _, query = rest.partition("?")
    told = dict(parse_qsl(query, keep_blank_values=True))
    if where.startswith("//"):
        servers, _, database = where[2:].partition("/")
    else:
        servers, database = "", where
    userinfo, _, servers = servers.rpartition("@")
    username, _, password = (unquote(part) for part in userinfo.partition(":"))
    hosts = [_host(one, name) for one in servers.split(",")] if servers else []
    make = _postgresql if name == "postgresql" else _mysql
    arguments, left_out = make(told)
    several = {"host": tuple(f"{host}:{port}" for host, port in hosts)} if len(hosts) > 1 else {}
    one = hosts[0] if len(hosts) == 1 else (None, None)
    url = URL.create(
        _SCHEMES[name],
        told.get("user") or username or None,
        told.get("password") or password or None,
        one[0] or (None if several else "localhost"),
        one[1],
        unquote(database) or None,
        several,
    )
    return Address(url, arguments, tuple(left_out))


def _host(text: str, name: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ""
    return host.strip("[]") or "localhost", int(port) if port else _PORTS[name]


def _postgresql(told: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    left_out: list[str] = []
    unknown: list[str] = []
    for name, value in told.items():
        if name in _TUNES["postgresql"]:
            left_out.append(name)
        elif (translated := _for_libpq(name, value, told)) is None:
            unknown.append(name)
        else:
            found |= translated
    _refuse(unknown, "of PostgreSQL's JDBC driver are not supported here")
    schemas = told.get("currentSchema")
    path = f"-c search_path={_escaped(schemas)}" if schemas else ""
    if options := f"{told.get('options', '')} {path}".strip():
        found["options"] = options
    return found, left_out


def _for_libpq(name: str, value: str, told: Mapping[str, str]) -> dict[str, str] | None:
    """Return libpq's form of a parameter; None if libpq lacks it."""
    found: dict[str, str] | None = {}
    match name:
        case "user" | "password" | "options" | "currentSchema":
            pass
        case "ssl":
            if value.lower() in ("true", "") and "sslfactory" not in told:
                found = {"sslmode": told.get("sslmode", "verify-full")}
        case "sslfactory" if value == _TRUSTING:
            found = {"sslmode": "require"}
        case "targetServerType" if value in _SERVERS:
            found = {"target_session_attrs": _SERVERS[value]}
        case "loadBalanceHosts":
            found = {"load_balance_hosts": "random" if value == "true" else "disable"}
        case "readOnly" | "useSSL" if value.lower() == "false":
            pass
        case _:
            found = {_SAME[name]: value} if name in _SAME else None
    return found


def _escaped(value: str) -> str:
    """Return a value as a command-line option; blanks are escaped with a backslash."""
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _mysql(told: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    left_out: list[str] = []
    unknown: list[str] = []
    for name, value in told.items():
        match name:
            case "user" | "password":
                pass
            case "connectTimeout":
                found["connect_timeout"] = max(1, int(value) // 1000)
            case "useSSL" | "requireSSL" if value.lower() == "false":
                pass
            case "sslMode" if value.upper() in ("DISABLED", "PREFERRED"):
                pass
            case "serverTimezone" | "connectionTimeZone" if value.upper() in ("UTC", "GMT"):
                pass
            case _ if name in _TUNES["mysql"]:
                left_out.append(name)
            case _:
                unknown.append(name)
    _refuse(unknown, "of MySQL's JDBC driver are not supported here")
    return found, left_out


def _libpq_names() -> set[str]:
    from psycopg import pq

    return {option.keyword.decode() for option in pq.Conninfo.get_defaults()}


def _refuse(names: list[str], why: str) -> None:
    if names:
        shown = ", ".join(name[:60] for name in names)
        raise ConfigException(f"{_URL}: the parameters {shown} {why}: leave them out")
