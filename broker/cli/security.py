"""`millstream security check server.properties`: what is open to whom, and what to change.

The rules look at the settings only, apart from `file_findings`, which looks at the files they name.
No text has a password in it.
"""

import argparse
import os
import stat
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from broker.cli.arguments import add_sub_command, plain_tool_parser
from broker.cli.java_text import table_text
from broker.config.broker_config import BrokerConfig, Endpoint
from broker.config.security_config import PLAIN, ListenerSecurity
from broker.config.sources import collect_settings
from broker.config.values import INT32_MAX
from broker.security.principal import ANONYMOUS
from common.credentials.jaas import TOKEN_URL
from common.credentials.mechanisms import OAUTHBEARER
from common.credentials.stores import Store
from common.kafka.errors import KafkaError

SHORT_PASSWORD = 12
SHORT_SECRET = 32
EVERYBODY = "everybody"
READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


class Finding(NamedTuple):
    """One thing to change: what is wrong, and what to do."""

    about: str
    problem: str
    advice: str


class Opening(NamedTuple):
    """One address that a node listens on, and the clients that get in."""

    name: str
    address: str
    protocol: str
    clients: str


def openings(config: BrokerConfig) -> Iterator[Opening]:
    """Return every address of a node."""
    for endpoint in (*config.listeners, *config.controller_listeners):
        security = config.security.listeners[endpoint.name]
        yield Opening(
            endpoint.name, _address(endpoint), security.protocol.value, _clients(security)
        )
    if config.http_listener is not None:
        yield Opening("http.listener", _address(config.http_listener), "HTTP", EVERYBODY)


def _address(endpoint: Endpoint) -> str:
    return f"{endpoint.host or 'all interfaces'}:{endpoint.port}"


def _clients(security: ListenerSecurity) -> str:
    if security.sasl is not None:
        return f"users by {', '.join(security.sasl.mechanisms)}"
    if security.tls is not None and security.tls.client_auth == "required":
        return "clients with a trusted certificate"
    return EVERYBODY


def is_local(endpoint: Endpoint) -> bool:
    """Return True if only programs on this machine reach an address."""
    if endpoint.host == "localhost":
        return True
    try:
        return ip_address(endpoint.host).is_loopback
    except ValueError:
        return False


def findings(config: BrokerConfig) -> Iterator[Finding]:
    """Return what to change in the settings."""
    for endpoint in (*config.listeners, *config.controller_listeners):
        yield from _of_listener(config, endpoint)
    http = config.http_listener
    if http is not None and not is_local(http):
        yield Finding(
            "http.listener",
            "health and metrics are open to everybody who reaches the port",
            "bind it to 127.0.0.1, or put a server with a password before it",
        )
    yield from _of_authorizer(config)
    yield from _of_connections(config)
    secret = config.security.tokens.secret_key
    if secret and len(secret) < SHORT_SECRET:
        yield Finding(
            "delegation.token.secret.key",
            f"it has fewer than {SHORT_SECRET} characters: who guesses it makes tokens of any user",
            "take a long random value",
        )


def _of_listener(config: BrokerConfig, endpoint: Endpoint) -> Iterator[Finding]:
    about = f"listener {endpoint.name}"
    security = config.security.listeners[endpoint.name]
    is_controller = endpoint in config.controller_listeners
    if not is_local(endpoint):
        if not security.protocol.uses_tls:
            yield Finding(
                about,
                "everything on the network between is readable, and can be changed",
                f"use {'SASL_SSL' if security.protocol.uses_sasl else 'SASL_SSL or SSL'} in "
                "listener.security.protocol.map",
            )
        if _clients(security) == EVERYBODY:
            what = "change the metadata of the cluster" if is_controller else "be User:ANONYMOUS"
            yield Finding(
                about,
                f"everybody who reaches the port may {what}",
                "set ssl.client.auth=required, or use SASL_SSL",
            )
    yield from _of_sasl(config, endpoint, security)


def _of_sasl(
    config: BrokerConfig, endpoint: Endpoint, security: ListenerSecurity
) -> Iterator[Finding]:
    sasl, about = security.sasl, f"listener {endpoint.name}"
    if sasl is None:
        return
    is_readable = not security.protocol.uses_tls and not is_local(endpoint)
    for mechanism in sasl.mechanisms:
        if is_readable and mechanism in {PLAIN, OAUTHBEARER}:
            yield Finding(
                about,
                f"{mechanism} sends what proves a user, and it is readable on the network",
                "use SASL_SSL, or SCRAM",
            )
    passwords = sasl.logins[PLAIN].passwords if PLAIN in sasl.logins else {}
    for user, password in sorted(passwords.items()):
        if len(password) < SHORT_PASSWORD:
            yield Finding(
                about,
                f"the password of {user} has fewer than {SHORT_PASSWORD} characters",
                "take a longer one",
            )
    if sasl.oauth is not None:
        yield from _of_oauth(about, security)
    if not config.security.max_session_ms:
        yield Finding(
            about,
            "a session lasts for ever, also that of a user who was removed",
            "set connections.max.reauth.ms, such as 3600000",
        )


def _of_oauth(about: str, security: ListenerSecurity) -> Iterator[Finding]:
    assert security.sasl is not None
    oauth = security.sasl.oauth
    assert oauth is not None
    if not oauth.url:
        yield Finding(
            about,
            "unsecured tokens are accepted: everybody can write one with any name",
            "set sasl.oauthbearer.jwks.endpoint.url",
        )
        return
    if oauth.url.startswith("http://"):
        yield Finding(
            about, "the keys of the issuer come over a readable connection", "use https://"
        )
    for setting, value in (("audience", oauth.rules.audiences), ("issuer", oauth.rules.issuer)):
        if not value:
            yield Finding(
                about,
                f"tokens of any {setting} that these keys have signed are accepted",
                f"set sasl.oauthbearer.expected.{setting}",
            )


def _of_authorizer(config: BrokerConfig) -> Iterator[Finding]:
    authorizer = config.security.authorizer
    if authorizer is None:
        endpoints = (*config.listeners, *config.controller_listeners)
        if not all(map(is_local, endpoints)):
            yield Finding(
                "authorizer.class.name",
                "it is not set: every client that gets in may do everything",
                "set it to org.apache.kafka.metadata.authorizer.StandardAuthorizer, with "
                "super.users",
            )
        return
    if authorizer.allow_everyone_if_no_acl_found:
        yield Finding(
            "allow.everyone.if.no.acl.found",
            "what no rule mentions is open to everybody",
            "set it to false, and add rules with: millstream acls",
        )
    if ANONYMOUS in authorizer.super_users:
        yield Finding(
            "super.users",
            "clients that prove nothing may do everything",
            f"remove {ANONYMOUS}, and give nodes a principal of their own",
        )


def _of_connections(config: BrokerConfig) -> Iterator[Finding]:
    limits = config.quotas.connections
    for endpoint in config.listeners:
        per_ip = limits.listeners_per_ip.get(endpoint.name, limits.max_connections_per_ip)
        if not is_local(endpoint) and per_ip == INT32_MAX:
            yield Finding(
                f"listener {endpoint.name}",
                "one address may take every connection",
                "set max.connections.per.ip, and a quota connection_creation_rate",
            )
    peers = (config.security.to_brokers, config.security.to_controllers)
    if any(each.protocol.uses_tls and not each.verifies_host for each in peers):
        yield Finding(
            "ssl.endpoint.identification.algorithm",
            "it is empty: a node talks to every server with a trusted certificate",
            "leave it at https, with host names in the certificates",
        )
    if any(each.oauth is not None and each.oauth.url.startswith("http://") for each in peers):
        yield Finding(
            TOKEN_URL,
            "this node sends its client secret over a readable connection",
            "use https://",
        )


def file_findings(config: BrokerConfig, properties: Path) -> Iterator[Finding]:
    """Return the files with secrets that other users of this machine can read."""
    stores: list[Store | None] = [
        config.security.to_brokers.keystore,
        config.security.to_controllers.keystore,
    ]
    proofs = []
    for peer in (config.security.to_brokers, config.security.to_controllers):
        if peer.kerberos is not None and peer.kerberos.keytab:
            proofs.append(peer.kerberos.keytab)
        if peer.oauth is not None and peer.oauth.url.startswith("file:"):
            proofs.append(unquote(urlsplit(peer.oauth.url).path))
    for security in config.security.listeners.values():
        stores.append(None if security.tls is None else security.tls.keystore)
        if security.sasl is not None and security.sasl.kerberos is not None:
            proofs.append(security.sasl.kerberos.keytab)
    files = [store.location for store in stores if store is not None and store.location]
    if any(word in name for name in config.given for word in SECRETS):
        files.append(str(properties))
    for name in dict.fromkeys([*files, *proofs]):
        try:
            mode = Path(name).stat().st_mode
        except OSError as error:
            yield Finding(name, f"it cannot be read: {error.strerror}", "check the path")
            continue
        if mode & READABLE_BY_OTHERS:
            yield Finding(name, "other users of this machine can read its secret", "chmod 600")


SECRETS = ("password", "jaas.config", "secret", "ssl.keystore.key")
"""Parts of names of settings with secrets."""


INVALID_CONFIGURATION = 2


def main(arguments: list[str]) -> int:
    """Run one sub-command."""
    parsed = _parser().parse_args(arguments)
    status: int = parsed.run(parsed)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = plain_tool_parser("security", "Look at the security of a node's settings.")
    commands = parser.add_subparsers(required=True, metavar="{check}")
    check = add_sub_command(
        commands, "security", "check", "show what is open to whom, and what to change"
    )
    check.set_defaults(run=_check)
    check.add_argument("properties", type=Path, help="the configuration file of a node")
    check.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that replaces the file's",
    )
    check.add_argument(
        "--strict", action="store_true", help="end with status 1 if there is anything to change"
    )
    return parser


def _check(options: argparse.Namespace) -> int:
    """Print the openings and the findings; return 2 for an invalid configuration."""
    try:
        settings = collect_settings(
            file=options.properties, environment=os.environ, overrides=options.override
        )
        config = BrokerConfig.from_settings(settings)
    except KafkaError as error:
        print(f"The node would not start: {error}")
        return INVALID_CONFIGURATION
    print(_openings_text(config))
    found = [*findings(config), *file_findings(config, options.properties)]
    print(_findings_text(found))
    return 1 if found and options.strict else 0


def _openings_text(config: BrokerConfig) -> str:
    rows = [tuple(opening) for opening in openings(config)]
    authorizer = config.security.authorizer
    rights = "may do everything: there is no authorizer"
    if authorizer is not None:
        supers = ", ".join(sorted(authorizer.super_users)) or "nobody"
        rights = f"may do what access rules say; {supers} may do everything"
    table = table_text(("LISTENER", "ADDRESS", "PROTOCOL", "OPEN TO"), rows)
    return f"{table}\n\nClients that get in {rights}."


def _findings_text(found: list[Finding]) -> str:
    if not found:
        return "\nNothing to change."
    lines = [f"\n{len(found)} to change:"]
    for number, (about, problem, advice) in enumerate(found, 1):
        lines += [f"{number:3}. {about}: {problem}.", f"     {advice[0].upper()}{advice[1:]}."]
    return "\n".join(lines)
