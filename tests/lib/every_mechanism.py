"""A broker that takes clients by every mechanism, and what clients need there, right and wrong."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from broker.__main__ import main as tool
from broker.config.oauth_config import HANDLER, UNSECURED_HANDLER
from common.credentials.access import kafka_access
from common.credentials.jaas import KERBEROS_MODULE, OAUTHBEARER_MODULE, SCRAM_MODULE, TOKEN_URL
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import list_topics
from millstream.processes.cluster_layout import free_ports
from millstream.processes.settings_files import PLAIN_MODULE, login_text
from millstream.testing import LocalBroker
from millstream.testing.certificates import CertificateAuthority, IssuedCertificate
from tests.lib.issuer import Issuer, token
from tests.lib.kerberos import REALM, Realm
from tests.lib.secured_broker import AUTHORIZER

CERTIFICATE = "SSL"
"""Mutual TLS, beside the mechanisms of SASL."""
MECHANISMS = (
    *("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    CERTIFICATE,
)
ALICE, PASSWORD, WRONG = "alice", "alice-secret", "not-hers"
_FORGED = rsa.generate_private_key(65537, 2048)


class Clients:
    """What clients need: addresses, users, tokens, keys and certificates, below a folder."""

    def __init__(self, folder: Path, realm: Realm | None) -> None:
        self.folder = folder
        self.realm = realm
        ports = dict(zip(("SASL_SSL", "SSL", "UNSECURED"), free_ports(), strict=False))
        self.addresses = {name: f"localhost:{port}" for name, port in ports.items()}
        strangers = CertificateAuthority(folder / "strangers")
        self._stranger = strangers.issue(ALICE)
        self._issuer = Issuer(folder, {})
        for is_right in (True, False):
            self.token_file(is_right).write_text(self.token(is_right))
        if realm is not None:
            self._make_principals(realm)

    def _make_principals(self, realm: Realm) -> None:
        self._service = realm.add("kafka/localhost")
        self._keytabs = {True: realm.add(ALICE), False: realm.folder / "stale.keytab"}
        realm.run("kadmin.local", "-q", f"addprinc -randkey bob@{REALM}")
        realm.run("kadmin.local", "-q", f"ktadd -k {self._keytabs[False]} bob@{REALM}")
        realm.run("kadmin.local", "-q", f"cpw -randkey bob@{REALM}")

    def use_authority(self, ca_file: Path) -> None:
        """Take certificates of the broker's own authority."""
        self.ca_file = ca_file
        self._alice = CertificateAuthority(ca_file.parent).issue(ALICE)

    def broker_settings(self) -> dict[str, str]:
        enabled = [each for each in MECHANISMS if each != CERTIFICATE]
        settings = {
            "listeners": ",".join(f"{name}://{at}" for name, at in self.addresses.items()),
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL,UNSECURED:SASL_SSL",
            "inter.broker.listener.name": "SASL_SSL",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
            **self._issuer.broker_settings(),
            "listener.name.unsecured.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"listener.name.unsecured.oauthbearer.{HANDLER}": UNSECURED_HANDLER,
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:admin;User:{ALICE}",
        }
        if self.realm is None:
            enabled.remove("GSSAPI")
        else:
            settings["listener.name.sasl_ssl.gssapi.sasl.jaas.config"] = login_text(
                KERBEROS_MODULE,
                useKeyTab="true",
                keyTab=str(self._service),
                principal=f"kafka/localhost@{REALM}",
            )
        return settings | {"listener.name.sasl_ssl.sasl.enabled.mechanisms": ",".join(enabled)}

    def address(self, mechanism: str) -> str:
        return self.addresses["SSL" if mechanism == CERTIFICATE else "SASL_SSL"]

    def password(self, is_right: bool) -> str:
        return PASSWORD if is_right else WRONG

    def token(self, is_right: bool) -> str:
        return token(ALICE) if is_right else token(ALICE, key=_FORGED)

    def token_file(self, is_right: bool) -> Path:
        return self.folder / f"{is_right}.jwt"

    def certificate(self, is_right: bool) -> IssuedCertificate:
        return self._alice if is_right else self._stranger

    def keytab(self, is_right: bool) -> Path:
        return self._keytabs[is_right]

    def principal(self, is_right: bool) -> str:
        return f"{ALICE if is_right else 'bob'}@{REALM}"

    def environment(self, is_right: bool) -> dict[str, str]:
        """Return the variables by which a client finds its realm and its key, as after kinit."""
        if self.realm is None:
            return {}
        return {
            **self.realm.environment,
            "KRB5_CLIENT_KTNAME": str(self.keytab(is_right)),
            "KRB5CCNAME": f"FILE:{self.folder}/{is_right}.cache",
        }

    def properties(self, mechanism: str, is_right: bool) -> dict[str, str]:
        """Return the settings of a client with Kafka's names."""
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca_file)}
        if mechanism == CERTIFICATE:
            store = str(self.certificate(is_right).keystore)
            own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}
            return {"security.protocol": "SSL", **trust, **own}
        own = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, **trust}
        return own | self._login(mechanism, is_right)

    def _login(self, mechanism: str, is_right: bool) -> Mapping[str, str]:
        jaas = "sasl.jaas.config"
        if mechanism == "OAUTHBEARER":
            handler = f"{OAUTHBEARER_MODULE.rpartition('.')[0]}.OAuthBearerLoginCallbackHandler"
            return {
                jaas: login_text(OAUTHBEARER_MODULE),
                TOKEN_URL: self.token_file(is_right).as_uri(),
                "sasl.login.callback.handler.class": handler,
            }
        if mechanism == "GSSAPI":
            return {
                "sasl.kerberos.service.name": "kafka",
                jaas: login_text(
                    KERBEROS_MODULE,
                    useKeyTab="true",
                    storeKey="true",
                    keyTab=str(self.keytab(is_right)),
                    principal=self.principal(is_right),
                ),
            }
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        return {jaas: login_text(module, username=ALICE, password=self.password(is_right))}


@contextmanager
def broker_of_every_mechanism(
    folder: Path, realm: Realm | None
) -> Iterator[tuple[LocalBroker, Clients]]:
    """Run the broker until the block ends. Without a realm it knows no GSSAPI."""
    clients = Clients(folder, realm)
    port = int(clients.addresses["SASL_SSL"].rpartition(":")[2])
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ({} if realm is None else realm.environment).items():
            patched.setenv(name, value)
        broker = LocalBroker(
            security="sasl_ssl",
            port=port,
            users={ALICE: PASSWORD},
            **clients.broker_settings(),
        )
        with broker:
            ca_file = Path(broker.client_settings()["ssl.ca.location"])
            clients.use_authority(ca_file)
            _add_scram(broker)
            yield broker, clients


def _add_scram(broker: LocalBroker) -> None:
    added = ",".join(f"SCRAM-SHA-{size}=[password={PASSWORD}]" for size in (256, 512))
    where = ("--bootstrap-server", broker.bootstrap_servers, "--command-config")
    user = ("--entity-type", "users", "--entity-name", ALICE)
    told = (*where, broker.client_file(), "--alter", *user, "--add-config", added)
    assert tool(["configs", *told]) == 0


def topics_of(broker: LocalBroker) -> set[str]:
    access = kafka_access(broker.bootstrap_servers, broker.client_file())
    with AdminClient(AdminSettings.of(access.bootstrap_servers, access.security)) as admin:
        return {topic.name for topic in list_topics(admin)}
