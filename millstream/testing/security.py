"""Security of brokers in tests: a certificate authority, users, and clients' settings.

`LocalBroker(security="sasl_ssl")` and `LocalCluster(security="sasl_ssl")` have a listener of that
protocol for clients. The user is `admin`, and `users={"alice": "hers"}` adds more; other settings
(`authorizer_class_name`, `super_users`) are Kafka's own. What brokers of a cluster say to each
other stays on loopback, unencrypted.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from millstream.processes.settings_files import (
    PLAIN_MODULE,
    login_text,
    properties_text,
    write_private,
)
from millstream.testing.certificates import CertificateAuthority

Security = Literal["ssl", "sasl_plaintext", "sasl_ssl"]
Client = Literal["confluent-kafka", "aiokafka", "kafka-python", "java"]
USER, PASSWORD = "admin", "admin-secret"
NOBODY: Mapping[str, str] = MappingProxyType({})


class LocalSecurity:
    """Owns the certificates and the users of one test broker or cluster, below its folder."""

    def __init__(self, kind: Security, folder: Path, users: Mapping[str, str] = NOBODY) -> None:
        """Make the certificates; raises ValueError for an unknown kind.

        `users` are passwords by user, besides the administrator's.
        """
        if kind not in {"ssl", "sasl_plaintext", "sasl_ssl"}:
            raise ValueError(f"security is ssl, sasl_plaintext or sasl_ssl, not {kind!r}")
        self.protocol = kind.upper()
        self._folder = folder
        self._passwords = {USER: PASSWORD, **users}
        self._uses_tls = kind != "sasl_plaintext"
        self._uses_sasl = kind != "ssl"
        self._authority: CertificateAuthority | None = None
        if self._uses_tls:
            self._authority = CertificateAuthority(folder / "certificates")
            self._keystore = self._authority.issue("broker").keystore

    @property
    def ca_file(self) -> Path:
        """The certificate that clients trust."""
        assert self._authority is not None, f"{self.protocol} has no certificates"
        return self._authority.certificate

    def broker_settings(self) -> dict[str, str]:
        """Return the broker's settings; the client listener has the name of its protocol."""
        settings: dict[str, str] = {}
        if self._uses_tls:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._keystore),
                **self._trust(),
            }
        if self._uses_sasl:
            passwords = {f"user_{name}": each for name, each in self._passwords.items()}
            jaas = login_text(PLAIN_MODULE, username=USER, password=PASSWORD, **passwords)
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config": jaas,
            }
        return settings

    def client_properties(self, user: str = USER) -> dict[str, str]:
        """Return the security settings of a client, with Kafka's names.

        With only SSL the client is anonymous, whatever `user` is.
        """
        settings = {"security.protocol": self.protocol}
        if self._uses_tls:
            settings |= self._trust()
        if self._uses_sasl:
            settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": login_text(
                    PLAIN_MODULE, username=user, password=self._passwords[user]
                ),
            }
        return settings

    def client_file(self, user: str = USER) -> Path:
        """Write a client's settings to a file for `--command-config`, and return its path."""
        file = self._folder / f"{user}.properties"
        write_private(file, properties_text(self.client_properties(user)))
        return file

    def client_settings(
        self, bootstrap_servers: str, client: Client, user: str = USER
    ) -> dict[str, Any]:
        """Return the settings of a client of a library; raise ValueError for an unknown library."""
        settings: dict[str, Any]
        match client:
            case "java":
                return {"bootstrap.servers": bootstrap_servers, **self.client_properties(user)}
            case "confluent-kafka":
                settings = {"security.protocol": self.protocol}
                if self._uses_tls:
                    settings["ssl.ca.location"] = str(self.ca_file)
                if self._uses_sasl:
                    settings |= {"sasl.mechanism": "PLAIN", "sasl.username": user}
                    settings["sasl.password"] = self._passwords[user]
                return {"bootstrap.servers": bootstrap_servers, **settings}
            case "aiokafka" | "kafka-python":
                settings = {"security_protocol": self.protocol}
                if self._uses_tls:
                    settings["ssl_context"] = ssl.create_default_context(cafile=self.ca_file)
                if self._uses_sasl:
                    settings |= {"sasl_mechanism": "PLAIN", "sasl_plain_username": user}
                    settings["sasl_plain_password"] = self._passwords[user]
                return {"bootstrap_servers": bootstrap_servers, **settings}
        raise ValueError(f"there are settings for no client {client!r}")

    def _trust(self) -> dict[str, str]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca_file)}
