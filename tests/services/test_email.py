"""The email service on a bus in memory, with a folder, and with an SMTP server that has moods."""

import asyncio
import socketserver
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from common.process.telemetry import Metrics
from services.email.app import EmailWorker
from services.email.mailbox import (
    Delivery,
    Fate,
    FolderMailbox,
    Mail,
    WrongMailboxError,
    open_mailbox,
)
from services.email.message import Contact
from services.email.postman import Postman
from tests.lib.order_feed import TRACE, Feed
from tests.lib.pipeline_bus import Bus, decode_all, fake_events


class KnownCustomers:
    """Customer c is known; customer late only after catching up."""

    def __init__(self) -> None:
        self.known = {"c": Contact("Ann", "ann@example.com"), "odd": Contact("Odd", "no address")}

    async def contact(self, customer_id: str) -> Contact | None:
        return self.known.get(customer_id)

    async def catch_up(self) -> None:
        self.known["late"] = Contact("Late", "late@example.com")


class MoodyMailbox(FolderMailbox):
    """Is away for the next `absences` batches; afterwards a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.absences = 0
        self.handed: list[str] = []

    async def deliver(self, mails: Sequence[Mail]) -> list[Delivery]:
        self.handed += [mail.name for mail in mails]
        if self.absences:
            self.absences -= 1
            return [Delivery(Fate.AWAY, "away")] * len(mails)
        return await super().deliver(mails)


class Office(Feed):
    """The service with its mailbox, and orders for it."""

    mailbox: MoodyMailbox

    async def confirmations(self) -> list[dict[str, Any]]:
        reader = self.events.reader("mails/mail_sent")
        return await decode_all(self.events, reader, self.bus.all("order-confirmations"))


def with_office(folder: Path, check: Callable[[Office], Awaitable[None]]) -> None:
    async def run() -> None:
        bus, events = Bus(), fake_events()
        mailbox = MoodyMailbox(folder)
        postman = Postman(mailbox, "orders@shop.example", KnownCustomers())
        writer = await events.writer("order-confirmations", "mails/mail_sent")
        office = Office(
            bus, events, EmailWorker(postman, bus.read_to_end, events, writer, Metrics())
        )
        office.mailbox = mailbox
        await office.start()
        await check(office)

    asyncio.run(run())


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_mail_for_each_order_and_state_however_often_it_comes(tmp_path: Path) -> None:
    async def check(office: Office) -> None:
        for state, version in (("CREATED", 1), ("VALIDATED", 2), ("PAID", 3), ("CANCELLED", 4)):
            for _ in range(3):
                await office.see("o", state, version)
        assert office.mailbox.handed == ["o.PAID", "o.CANCELLED"]
        assert files(tmp_path) == ["o.CANCELLED.eml", "o.PAID.eml"]
        found = await office.confirmations()
        assert [(one["state"], one["result"]) for one in found] == [
            ("PAID", "SENT"),
            ("CANCELLED", "SENT"),
        ]
        assert found[0]["recipient"] == "ann@example.com"
        (paid, _) = office.bus.all("order-confirmations")
        assert dict(paid.headers)["traceparent"].split(b"-")[1] == TRACE.split("-")[1].encode()

    with_office(tmp_path, check)


def test_mailbox_that_is_away_is_tried_again_by_the_next_owner_too(tmp_path: Path) -> None:
    async def check(office: Office) -> None:
        office.mailbox.absences = 2
        await office.see("o", "PAID", 3)
        await office.step()
        assert len(office.mailbox.handed) == 1
        office.bus.clock_ms += 200
        await office.step()
        await office.instance.take(range(6))
        office.bus.clock_ms += 400
        await office.step()
        assert office.mailbox.handed == ["o.PAID"] * 3
        assert files(tmp_path) == ["o.PAID.eml"]
        assert len(await office.confirmations()) == 1

    with_office(tmp_path, check)


@pytest.mark.parametrize(
    ("customer_id", "result"),
    [("late", "SENT"), ("nobody", "UNDELIVERABLE"), ("odd", "UNDELIVERABLE")],
)
def test_customer_without_address_is_told_of_in_words(
    tmp_path: Path, customer_id: str, result: str
) -> None:
    async def check(office: Office) -> None:
        await office.see("o", "FAILED", 2, customer_id=customer_id)
        await office.see("good", "PAID", 3)
        found = {one["order_id"]: one for one in await office.confirmations()}
        assert found["o"]["result"] == result
        assert (found["o"]["reason"] is None) == (result == "SENT")
        assert found["good"]["result"] == "SENT"

    with_office(tmp_path, check)


def a_mail(name: str, recipient: str = "ann@example.com") -> Mail:
    message = EmailMessage(policy=policy.SMTP)
    message["From"], message["To"], message["Subject"] = "a@b.example", recipient, name
    message.set_content("text")
    return Mail(name, message)


def test_folder_keeps_whole_mails_and_never_writes_beside_itself(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    mailbox = open_mailbox(str(folder))
    names = ["o.PAID", "../../etc/x", "/etc/x", "..", "x" * 300]
    fates = [one.fate for one in asyncio.run(mailbox.deliver([a_mail(name) for name in names]))]
    assert fates == [Fate.DELIVERED] * 4 + [Fate.REFUSED]
    assert files(tmp_path) == ["box"]
    assert all(name.endswith(".eml") for name in files(folder))
    read = message_from_bytes((folder / "o.PAID.eml").read_bytes(), policy=policy.default)
    assert read["Subject"] == "o.PAID"


def test_folder_that_takes_nothing_is_away(tmp_path: Path) -> None:
    mailbox = FolderMailbox(tmp_path / "box")
    (tmp_path / "box").rmdir()
    (delivery,) = asyncio.run(mailbox.deliver([a_mail("x")]))
    assert delivery.fate is Fate.AWAY


def test_what_is_neither_folder_nor_smtp_is_refused() -> None:
    with pytest.raises(WrongMailboxError, match="imap"):
        open_mailbox("imap://host")


class Smtp(socketserver.StreamRequestHandler):
    """Enough of RFC 5321 for a client that sends mails; the recipient's name sets the mood."""

    def handle(self) -> None:
        self.say("220 test")
        data: list[bytes] | None = None
        for line in self.rfile:
            word = line.strip().upper()
            if data is not None:
                if line == b".\r\n":
                    self.server.mails.append(b"".join(data))
                    data = None
                    self.say("250 taken")
                else:
                    data.append(line)
            elif word.startswith(b"EHLO"):
                self.say("250 test")
            elif word.startswith(b"RCPT TO:<HANG-UP"):
                return
            elif word.startswith(b"RCPT TO:<FULL"):
                self.say("452 mailbox is full")
            elif word.startswith(b"RCPT TO:<NOBODY"):
                self.say("550 no such user")
            elif word == b"DATA":
                data = []
                self.say("354 go on")
            elif word == b"QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def smtp_server() -> Iterator[tuple[str, list[bytes]]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Smtp) as server:
        server.mails = []
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"smtp://127.0.0.1:{server.server_address[1]}", server.mails
        server.shutdown()
        thread.join()


def deliver_to(url: str, *users: str) -> list[Delivery]:
    mails = [a_mail(user, f"{user}@example.com") for user in users]
    return asyncio.run(open_mailbox(url).deliver(mails))


def test_smtp_server_takes_refuses_or_puts_off_each_mail_by_itself() -> None:
    with smtp_server() as (url, mails):
        found = deliver_to(url, "ann", "nobody", "full", "bob")
    assert [one.fate for one in found] == [
        Fate.DELIVERED,
        Fate.REFUSED,
        Fate.AWAY,
        Fate.DELIVERED,
    ]
    assert found[1].reason == "550 no such user"
    subjects = [message_from_bytes(mail, policy=policy.default)["Subject"] for mail in mails]
    assert subjects == ["ann", "bob"]


def test_smtp_server_that_hangs_up_has_what_it_took_and_is_away_for_the_rest() -> None:
    with smtp_server() as (url, mails):
        found = deliver_to(url, "ann", "hang-up", "bob")
    assert [one.fate for one in found] == [Fate.DELIVERED, Fate.AWAY, Fate.AWAY]
    assert len(mails) == 1


def test_smtp_server_that_is_not_there_is_away() -> None:
    with smtp_server() as (url, _):
        pass
    assert [one.fate for one in deliver_to(url, "ann")] == [Fate.AWAY]
