"""A stack with TLS and users (`millstream up --security sasl_ssl`): its certificates and files.

They are made at the first start, in a folder that only its owner can read, and kept for the next.
Clients and brokers speak SASL_SSL as the user `admin`; controllers and HTTP stay on loopback,
unencrypted.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from common.credentials.translation import librdkafka_security
from millstream.processes.settings_files import (
    PLAIN_MODULE,
    login_text,
    properties_text,
    write_private,
)
from millstream.testing.certificates import CertificateAuthority

SASL_SSL: Final = "sasl_ssl"
_USER: Final = "admin"
_PASSWORD_BYTES: Final = 18
_BROKER, _CLIENT, _KCAT = "server.properties", "client.properties", "kcat.conf"


def broker_file(folder: Path) -> str:
    """Return the settings that all brokers share."""
    return str(folder / _BROKER)


def client_file(folder: Path) -> str:
    """Return the settings of clients, for `--command-config`."""
    return str(folder / _CLIENT)


def kcat_file(folder: Path) -> str:
    """Return the settings of clients in librdkafka's names, for `KCAT_CONFIG`."""
    return str(folder / _KCAT)


def keep_private(own: Path, data: Path) -> None:
    """Have this process and those that it starts make files that only their owner can read.

    Logs and data of a secured cluster hold what its users say and how they log in. Raise OSError.
    """
    os.umask(0o077)
    own.mkdir(parents=True, exist_ok=True)
    own.chmod(0o700)
    for each in (own / "data", *data.glob("broker-*")):
        if each.exists():
            each.chmod(0o700)


def make_security(folder: Path) -> None:
    """Make the files unless they are there. Raise OSError."""
    if Path(kcat_file(folder)).exists():
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = CertificateAuthority(folder / "certificates")
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    trust = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    login = {"username": _USER, "password": password}
    broker = {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login_text(
            PLAIN_MODULE, **login, **{f"user_{_USER}": password}
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker").keystore),
        **trust,
    }
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": login_text(PLAIN_MODULE, **login),
        **trust,
    }
    write_private(folder / _BROKER, properties_text(broker))
    write_private(folder / _CLIENT, properties_text(client))
    kcat = (f"{name}={value}\n" for name, value in librdkafka_security(client).items())
    write_private(folder / _KCAT, "".join(kcat))
