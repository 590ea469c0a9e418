"""Where an admin client begins, and how long it waits."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from common.credentials.connecting import OPEN, Security
from common.kafka.client.exchange import parse_addresses


class Watch(Protocol):
    """Tells a user how an admin client gets on."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Return the block in which an answer is waited for."""
        ...

    def answered(self, request: str) -> None:
        """Note one more answer, and the name of its request."""
        ...


class NoWatch:
    """Tells nobody."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Return a block that does nothing."""
        return nullcontext()

    def answered(self, request: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class AdminSettings:
    """Where to begin and how long to wait; the defaults are those of Kafka's AdminClient."""

    bootstrap: tuple[tuple[str, int], ...]
    is_controller_bootstrap: bool = False
    client_id: str = "millstream-admin"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    first_contact_timeout_ms: int = 10_000
    """How long to look for a first node that answers: a mistyped address is told soon."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    security: Security = OPEN
    watch: Watch = field(default_factory=NoWatch)

    @classmethod
    def of(cls, bootstrap_servers: str, security: Security = OPEN, **more: Any) -> Self:
        """Return the settings for addresses, with 9092 where a port is missing.

        Raise KafkaError(INVALID_CONFIG).
        """
        return cls(parse_addresses(bootstrap_servers, 9092), security=security, **more)

    @classmethod
    def within(
        cls, timeout_ms: int, bootstrap_servers: str, security: Security = OPEN, **more: Any
    ) -> Self:
        """Return the settings of a client whose every call ends after some time."""
        return cls.of(
            bootstrap_servers,
            security,
            # If one broker is silent, another one can still answer.
            request_timeout_ms=timeout_ms // 2,
            api_timeout_ms=timeout_ms,
            first_contact_timeout_ms=timeout_ms,
            **more,
        )
