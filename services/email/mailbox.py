"""Where mails go: a folder, or an SMTP server.

After a crash a mail may be delivered again. In the folder it has the same name, so it is the same
file. An SMTP server cannot tell whether it has a mail already: a crash between its answer and our
commit sends the mail twice, and only the Message-ID tells the receiver that both are one.

A folder shows whole mails only: each is written beside its place and moved there. They are not
synced one by one: a killed service loses none, a power cut may.
"""

import asyncio
import contextlib
import os
import smtplib
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote, urlsplit

_TIMEOUT_SECONDS = 10.0
_NAME_MAX_BYTES = 200
_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


class Fate(Enum):
    """The result of one attempt."""

    DELIVERED = "DELIVERED"
    REFUSED = "REFUSED"
    AWAY = "AWAY"


class Delivery(NamedTuple):
    """The result of one attempt, and the reason for it."""

    fate: Fate
    reason: str = ""


class Mail(NamedTuple):
    """A mail and the name that makes a second one like it the same."""

    name: str
    message: EmailMessage


DELIVERED = Delivery(Fate.DELIVERED)


class Mailbox(Protocol):
    """Takes mails. It never raises for what is wrong with one of them or with itself."""

    async def deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        """Deliver each mail; return what became of it, in their order."""


class WrongMailboxError(ValueError):
    """The setting names neither a folder nor an SMTP server."""


def open_mailbox(place: str) -> Mailbox:
    """Return the mailbox at a URL or in a folder, which is made if it is missing."""
    if "://" not in place:
        return FolderMailbox(Path(place))
    scheme = urlsplit(place).scheme
    if scheme not in _PORTS:
        raise WrongMailboxError(
            f"mailbox: {scheme}:// is none of {', '.join(_PORTS)}, nor a folder"
        )
    return SmtpMailbox(place)


class FolderMailbox:
    """One `.eml` file for each mail, named for the order and the state it is about."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._marker = f".{os.getpid()}.part"

    async def deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        return await asyncio.to_thread(lambda: [self._write(mail) for mail in mails])

    def _write(self, mail: Mail) -> Delivery:
        # No name that was typed somewhere leads out of the folder.
        name = quote(mail.name, safe=" +,@=")
        if len(name) > _NAME_MAX_BYTES:
            return Delivery(Fate.REFUSED, "the order's id is too long for the name of a file")
        target = self._folder / f"{name}.eml"
        part = self._folder / f".{name}{self._marker}"
        try:
            part.write_bytes(mail.message.as_bytes())
            part.replace(target)
        except OSError as error:
            return Delivery(Fate.AWAY, str(error))
        return DELIVERED


class SmtpMailbox:
    """An SMTP server (RFC 5321), over one connection for each batch of mails."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._host = parts.hostname or "localhost"
        self._port = parts.port or _PORTS[parts.scheme]
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")

    async def deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        return await asyncio.to_thread(self._deliver, mails)

    def _deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        try:
            with self._session() as session:
                deliveries.extend(_send(session, mail.message) for mail in mails)
        except (smtplib.SMTPException, OSError) as error:
            # Those that were not reached are tried later, over another connection.
            away = Delivery(Fate.AWAY, f"{type(error).__name__}: {error}")
            deliveries += [away] * (len(mails) - len(deliveries))
        return deliveries

    @contextlib.contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        kind = smtplib.SMTP_SSL if self._scheme == "smtps" else smtplib.SMTP
        with kind(self._host, self._port, timeout=_TIMEOUT_SECONDS) as session:
            if self._scheme == "smtp+starttls":
                session.starttls()
            if self._user:
                session.login(self._user, self._password)
            yield session


def _send(session: smtplib.SMTP, message: EmailMessage) -> Delivery:
    """Send one mail; a server that will never take it (5yz) has refused it."""
    try:
        session.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        return _refusal(*next(iter(error.recipients.values())))
    except smtplib.SMTPServerDisconnected:
        raise
    except smtplib.SMTPResponseException as error:
        return _refusal(error.smtp_code, error.smtp_error)
    return DELIVERED


def _refusal(code: int, text: bytes | str) -> Delivery:
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return Delivery(Fate.REFUSED if code >= 500 else Fate.AWAY, f"{code} {words}")
