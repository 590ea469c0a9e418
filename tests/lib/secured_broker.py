"""A broker with an authorizer, one principal for each program, and what the programs did there."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from broker.__main__ import main as tool
from common.credentials.access import kafka_access
from common.kafka.acls import AclFilter
from common.kafka.admin.acls import create_acls, delete_acls
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.grants import rule
from common.kafka.rights import Right
from millstream.processes.settings_files import properties_text, write_private
from millstream.testing import LocalBroker
from millstream.testing.certificates import CertificateAuthority
from millstream.testing.security import USER
from tests.lib.issuer import Issuer

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LINE = re.compile(
    r"(?P<verdict>allowed|denied) principal='User:(?P<user>[^']*)' host=\S+ "
    r"operation=(?P<operation>\w+) resource=(?P<kind>\w+):'(?P<name>[^']*)'"
)
IMPLIED = {
    "DESCRIBE": ("READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",),
}
"""What an operation is also allowed by."""


class Decision(NamedTuple):
    """One line of the audit log."""

    is_allowed: bool
    user: str
    operation: str
    kind: str
    name: str

    def is_due_to(self, right: Right) -> bool:
        """Tell whether a right allows it."""
        operations = (self.operation, *IMPLIED.get(self.operation, ()))
        return right.operation in operations and right.covers(self.kind, self.name)


class SecuredBroker:
    """Owns a broker whose audit log has every decision.

    With a folder for an issuer, users besides the administrator come with its tokens.
    """

    def __init__(self, users: Iterable[str], issuer: Path | None = None, **settings: Any) -> None:
        passwords = {user: password_of(user) for user in users}
        self._issuer = None if issuer is None else Issuer(issuer, passwords)
        self._folder = issuer
        self.broker = LocalBroker(
            security="sasl_ssl",
            users=passwords,
            **{
                "authorizer.class.name": AUTHORIZER,
                "super.users": f"User:{USER}",
                **({} if self._issuer is None else self._issuer.broker_settings()),
                **settings,
            },
        )

    def client_file(self, user: str) -> str:
        """Return the file of a user's client settings."""
        if self._issuer is None or self._folder is None or user == USER:
            return self.broker.client_file(user)
        own = {**self.broker.client_settings("java", user), **self._issuer.client_properties(user)}
        del own["bootstrap.servers"]
        file = self._folder / f"{user}.properties"
        write_private(file, properties_text(own))
        return str(file)

    def __enter__(self) -> "SecuredBroker":
        self.broker.start()
        try:
            if self._issuer is not None:
                ca_file = Path(self.broker.client_settings()["ssl.ca.location"])
                self._issuer.serve(CertificateAuthority(ca_file.parent))
            self.log_decisions("DEBUG")
        except BaseException:
            self.broker.close()
            raise
        return self

    def log_decisions(self, level: str) -> None:
        """Log all decisions at DEBUG, denials at INFO."""
        with self.admin() as admin:
            (node_id,) = admin.nodes().nodes
        told = [
            *("--bootstrap-server", self.bootstrap_servers),
            *("--command-config", self.broker.client_file(), "--alter"),
            *("--entity-type", "broker-loggers", "--entity-name", str(node_id)),
            *("--add-config", f"millstream.authorizer={level}"),
        ]
        assert tool(["configs", *told]) == 0

    def __exit__(self, *_: object) -> None:
        self.broker.close()
        if self._issuer is not None:
            self._issuer.close()

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.bootstrap_servers

    def admin(self) -> AdminClient:
        """Return a client of the administrator."""
        access = kafka_access(self.bootstrap_servers, self.broker.client_file())
        return AdminClient(AdminSettings.of(access.bootstrap_servers, access.security))

    def allow(self, user: str, rights: Iterable[Right]) -> None:
        """Add rules. They hold when this returns."""
        with self.admin() as admin:
            create_acls(admin, [rule(f"User:{user}", each) for each in rights])

    def forbid(self, user: str, right: Right) -> None:
        """Remove one rule."""
        one = rule(f"User:{user}", right)
        wanted = AclFilter(*one.pattern, *one[1:])
        with self.admin() as admin:
            assert delete_acls(admin, [wanted]) == [one]

    def decisions(self, after: int = 0) -> Iterator[Decision]:
        """Return what the audit log has of users who are not the administrator.

        `after` is a length of the log: only what comes behind it.
        """
        for found in _LINE.finditer(self.broker.log(), after):
            if found["user"] != USER:
                kind = found["kind"].lower().replace("_", "-")
                is_allowed = found["verdict"] == "allowed"
                yield Decision(is_allowed, found["user"], found["operation"], kind, found["name"])


def password_of(user: str) -> str:
    return f"{user}-secret"


def unneeded(decisions: Iterable[Decision], rights: Iterable[Right]) -> list[Right]:
    """Return the rights without which everything would have been allowed all the same."""
    told = tuple(rights)
    missed = set()
    for each in decisions:
        due = [right for right in told if each.is_due_to(right)]
        if each.is_allowed and len(due) == 1:
            missed.add(due[0])
    return [right for right in told if right not in missed]
