"""Asks one question after the other; a question without an answer is kept with its reason."""

from collections.abc import Callable
from typing import Final, TypeVar

from common.credentials.access import KafkaAccess
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.client.exchange import parse_addresses
from common.kafka.errors import KafkaError
from common.process.clock import timestamp_ms
from explain.facts import Unanswered

TIMEOUT_MS: Final = 5_000
"""For each question: what is broken is told soon."""

Answer = TypeVar("Answer")
Default = TypeVar("Default")


def admin_client(access: KafkaAccess, timeout_ms: int = TIMEOUT_MS) -> AdminClient:
    """Return a client that gives up each question after `timeout_ms`."""
    bootstrap = parse_addresses(access.bootstrap_servers, default_port=9092)
    settings = AdminSettings(
        bootstrap,
        client_id="millstream-explain",
        request_timeout_ms=timeout_ms,
        api_timeout_ms=timeout_ms,
        first_contact_timeout_ms=timeout_ms,
        security=access.security,
    )
    return AdminClient(settings)


class Questions:
    """Owns the list of what was not answered; `now_ms` is wall time."""

    def __init__(self, client: AdminClient, now_ms: Callable[[], int] = timestamp_ms) -> None:
        self.client = client
        self.now_ms = now_ms
        self.unanswered: list[Unanswered] = []

    def ask(
        self, question: str, answer: Callable[[AdminClient], Answer], default: Default
    ) -> Answer | Default:
        """Return the answer, or `default` when there is none."""
        try:
            return answer(self.client)
        except KafkaError as error:
            self.note(question, error)
            return default

    def note(self, question: str, error: KafkaError) -> None:
        """Keep a question that was not answered."""
        found = Unanswered(question, error.code.name, str(error))
        if found not in self.unanswered:
            self.unanswered.append(found)
