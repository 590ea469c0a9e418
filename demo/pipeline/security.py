"""The demo's cluster with TLS, passwords and rules (`SECURE=1`): a principal for each program.

Certificates and passwords are made at the start, below the demo's data, and are gone with it. They
lie in files that only their owner can read: a password in an option would show in the list of
processes. Clients and brokers speak SASL_SSL, controllers TLS with certificates on both sides, and
the schema registry HTTPS to the same users. The console is served to the administrator alone.
"""

import asyncio
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path

from common.credentials.access import VARIABLE, KafkaAccess, kafka_access
from common.http.security import VARIABLE as HTTP_VARIABLE
from common.kafka.grants import grant, rules
from common.kafka.rights import unnamed
from demo.pipeline.display import Display
from millstream.processes.settings_files import (
    PLAIN_MODULE,
    login_text,
    properties_text,
    write_private,
)
from millstream.testing.certificates import CertificateAuthority

ADMIN, BROKER = "admin", "broker"
CONSOLE, DEMO, LOAD, MIRROR, REGISTRY = "console", "demo", "load", "mirror", "registry"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_PASSWORD_BYTES = 18
_RULES_SECONDS = 30.0
_RULES_PAUSE_SECONDS = 0.05


class DemoSecurity:
    """Owns the certificates, the users and their files."""

    def __init__(self, folder: Path) -> None:
        """Make them below `folder`."""
        folder.mkdir(parents=True, mode=0o700)
        self._folder = folder
        authority = CertificateAuthority(folder / "certificates")
        self._keystore = authority.issue(BROKER).keystore
        self._trust = {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
        }
        self._passwords = {
            user: secrets.token_urlsafe(_PASSWORD_BYTES) for user in (ADMIN, BROKER, *unnamed())
        }
        for user in self._passwords:
            write_private(self._file(user), properties_text(self._client(user)))
        keystore = authority.issue(REGISTRY).keystore
        self._http_files = {
            REGISTRY: self._write_http("http", "users", keystore, self._passwords),
            # The console has the rights of the administrator, so nobody else may use it.
            CONSOLE: self._write_http(
                "console-http", "console-users", keystore, {ADMIN: self._passwords[ADMIN]}
            ),
        }

    def _write_http(
        self, name: str, users_name: str, keystore: Path, passwords: Mapping[str, str]
    ) -> Path:
        """Write how a server is reached: over TLS, by these users; return the file."""
        users = self._folder / users_name
        write_private(users, properties_text(passwords))
        told = {
            "ssl.keystore.location": str(keystore),
            "authentication.method": "BASIC",
            "authentication.users.file": str(users),
        }
        file = self._folder / f"{name}.properties"
        write_private(file, properties_text(told))
        return file

    def broker_file(self) -> Path:
        """Write the settings that all nodes share, and return where they are."""
        passwords = {f"user_{user}": password for user, password in self._passwords.items()}
        own = {"username": BROKER, "password": self._passwords[BROKER]}
        settings = {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login_text(
                PLAIN_MODULE, **own, **passwords
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            **self._trust,
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": f"RULE:^CN={BROKER}$/{BROKER}/,DEFAULT",
            "authorizer.class.name": _AUTHORIZER,
            "super.users": f"User:{ADMIN};User:{BROKER}",
        }
        file = self._folder / "server.properties"
        write_private(file, properties_text(settings))
        return file

    def client_file(self, user: str) -> str:
        """Return the file of client settings of a user, or of a program."""
        return str(self._file(user))

    def access(self, bootstrap_servers: str, user: str) -> KafkaAccess:
        """Return how a user reaches the cluster."""
        return kafka_access(bootstrap_servers, self.client_file(user))

    def environment(self, child: str) -> Mapping[str, str]:
        """Return the variables of one of the demo's programs."""
        user = ADMIN if child == CONSOLE else child.replace("_", "-")
        found = {VARIABLE: self.client_file(user)} if user in self._passwords else {}
        if child in self._http_files:
            found[HTTP_VARIABLE] = str(self._http_files[child])
        return found

    @property
    def console_users(self) -> Path:
        """The file with the user and the password of the console."""
        return self._folder / "console-users"

    async def give_rights(self, bootstrap_servers: str, display: Display) -> None:
        """Give every program its rights, and show the rules that the cluster has then."""
        admin = self.access(bootstrap_servers, ADMIN)
        wanted = {f"User:{program}": rights for program, rights in unnamed().items()}
        await asyncio.to_thread(grant, admin, wanted)
        display.say("access rules of the cluster:")
        for principal, text in await _rules_of(admin, wanted.keys()):
            display.say(f"  {principal:20} {text}")

    def _file(self, user: str) -> Path:
        return self._folder / f"{user}.properties"

    def _client(self, user: str) -> dict[str, str]:
        login = login_text(PLAIN_MODULE, username=user, password=self._passwords[user])
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login,
            **self._trust,
            "schema.registry.ssl.truststore.location": self._trust["ssl.truststore.location"],
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": f"{user}:{self._passwords[user]}",
        }


async def _rules_of(admin: KafkaAccess, principals: Collection[str]) -> list[tuple[str, str]]:
    """Return the rules when the broker that is asked knows those of all principals.

    It may have read the metadata log less far than the controller. Raise TimeoutError.
    """
    async with asyncio.timeout(_RULES_SECONDS):
        while True:
            found = await asyncio.to_thread(rules, admin)
            if {principal for principal, _ in found}.issuperset(principals):
                return found
            await asyncio.sleep(_RULES_PAUSE_SECONDS)
