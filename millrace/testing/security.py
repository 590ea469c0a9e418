"""Security of brokers in tests: a certificate authority, a user, and clients' settings.

`LocalBroker(security="sasl_ssl")` and `LocalCluster(security="sasl_ssl")` have a listener of that
protocol for clients. The user is `admin`; more settings (`authorizer_class_name`, `super_users`)
are Kafka's own. What brokers of a cluster say to each other stays on loopback, unencrypted.
"""

import ssl
from pathlib import Path
from typing import Any, Literal

from millrace.certificates import CertificateAuthority

Security = Literal["ssl", "sasl_plaintext", "sasl_ssl"]
Client = Literal["confluent-kafka", "aiokafka", "kafka-python"]
USER, PASSWORD = "admin", "admin-secret"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


class LocalSecurity:
    """Owns the certificates of one test broker or cluster, below its folder."""

    def __init__(self, kind: Security, folder: Path) -> None:
        """Make the certificates; raises ValueError for an unknown kind."""
        if kind not in {"ssl", "sasl_plaintext", "sasl_ssl"}:
            raise ValueError(f"security is ssl, sasl_plaintext or sasl_ssl, not {kind!r}")
        self.protocol = kind.upper()
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
        """Return the settings of a broker whose client listener is called as its protocol."""
        settings: dict[str, str] = {}
        if self._uses_tls:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._keystore),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.ca_file),
            }
        if self._uses_sasl:
            jaas = (
                f'{_PLAIN_MODULE} required username="{USER}" password="{PASSWORD}" '
                f'user_{USER}="{PASSWORD}";'
            )
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config": jaas,
            }
        return settings

    def client_settings(self, bootstrap_servers: str, client: Client) -> dict[str, Any]:
        """Return what a client of this library is made with; raises ValueError for another one."""
        if client == "confluent-kafka":
            return self._of_librdkafka(bootstrap_servers)
        if client not in {"aiokafka", "kafka-python"}:
            raise ValueError(f"there are settings for no client {client!r}")
        settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap_servers,
            "security_protocol": self.protocol,
        }
        if self._uses_tls:
            settings["ssl_context"] = ssl.create_default_context(cafile=str(self.ca_file))
        if self._uses_sasl:
            settings |= {
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": USER,
                "sasl_plain_password": PASSWORD,
            }
        return settings

    def _of_librdkafka(self, bootstrap_servers: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": self.protocol,
        }
        if self._uses_tls:
            settings["ssl.ca.location"] = str(self.ca_file)
        if self._uses_sasl:
            settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
            }
        return settings
