"""How a program reaches one Kafka cluster: its addresses, and a file of Kafka's client settings.

    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
        username="orders" password="...";
    ssl.truststore.location=certificates/ca.pem

Every program takes such a file as `--command-config`, or from MILLSTREAM_COMMAND_CONFIG. So a
password is in no command line and in no variable. The file also says how to reach a secured schema
registry: `schema.registry.ssl.truststore.location`, `basic.auth.user.info=NAME:PASSWORD` with
`basic.auth.credentials.source=USER_INFO`.
"""

import argparse
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from common.credentials.connecting import OPEN, Security, security_from
from common.credentials.registry import registry_access
from common.credentials.translation import (
    ClientSettingsError,
    client_security,
    is_security,
    librdkafka_security,
)
from common.process.properties import read_properties

log = logging.getLogger("common.credentials")

OPTION: Final = "--command-config"
VARIABLE: Final = "MILLSTREAM_COMMAND_CONFIG"
SERVERS_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
MEANING: Final = (
    "file of Kafka's client settings: security.protocol, sasl.jaas.config, "
    "ssl.truststore.location and so on"
)
_OF_REGISTRY: Final = ("schema.registry.", "basic.auth.")


@dataclass(frozen=True)
class KafkaAccess:
    """The addresses of a cluster and the security settings of its clients."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Security settings with Kafka's names."""
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    """How to reach the schema registry, with the names of Confluent's serialisers."""

    def librdkafka(self) -> dict[str, Any]:
        """Return what a client of confluent-kafka is made with."""
        return {"bootstrap.servers": self.bootstrap_servers, **self._librdkafka}

    def aiokafka(self) -> dict[str, Any]:
        """Return what a client of aiokafka is made with."""
        return {"bootstrap_servers": self.bootstrap_servers, **self._aiokafka}

    def java(self) -> dict[str, str]:
        """Return the properties of a Java client."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.properties}

    @cached_property
    def _librdkafka(self) -> dict[str, Any]:
        return librdkafka_security(self.properties)

    @cached_property
    def security(self) -> Security:
        """How a connection is secured; its TLS context is that of all clients of this access."""
        return security_from(client_security(self.properties)) if self.properties else OPEN

    @cached_property
    def _aiokafka(self) -> dict[str, Any]:
        if not self.properties:
            return {}
        # Not every program that reads the settings has clients of aiokafka.
        from common.credentials.aiokafka_clients import aiokafka_security

        return aiokafka_security(client_security(self.properties), self.security.tls)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what was made of the settings: a TLS context cannot be sent to a process."""
        names = ("bootstrap_servers", "properties", "registry")
        return {name: vars(self)[name] for name in names}


def kafka_access(
    bootstrap_servers: str, file: str = "", *, needs_librdkafka: bool = True
) -> KafkaAccess:
    """Return the access that a file of client settings gives; without one, to an open cluster.

    Raise ClientSettingsError for a file or a setting that cannot be used. A program whose clients
    are all of aiokafka says so: librdkafka may lack a mechanism.
    """
    if not file:
        return KafkaAccess(bootstrap_servers)
    given = read_client_file(file)
    access = KafkaAccess(
        bootstrap_servers,
        {name: value for name, value in given.items() if is_security(name)},
        {name: value for name, value in given.items() if name.startswith(_OF_REGISTRY)},
    )
    for name in given.keys() - access.properties.keys() - access.registry.keys():
        log.warning("ignored: %s in %s does not say how to connect", name, file)
    # The translations, so that what is wrong is told at the start.
    if needs_librdkafka:
        access.librdkafka()
    access.aiokafka()
    registry_access(access.registry)
    return access


def add_option(
    parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ
) -> None:
    """Declare the option, as `command_config`, with the variable as its default."""
    parser.add_argument(OPTION, default=environment.get(VARIABLE, ""), metavar="FILE", help=MEANING)


def named_servers(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Return the brokers of `--bootstrap-server`, or of the variable; exit if neither names any."""
    servers: str = options.bootstrap_server or environment.get(SERVERS_VARIABLE, "")
    if not servers:
        parser.error(f"--bootstrap-server is missing (or {SERVERS_VARIABLE})")
    return servers


def read_client_file(file: str | Path) -> dict[str, str]:
    """Return all settings of a file. Raise ClientSettingsError."""
    try:
        return read_properties(Path(file))
    except (OSError, ValueError) as error:
        raise ClientSettingsError(f"{file} cannot be read: {error}") from error
