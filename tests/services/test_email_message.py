"""Letters and mails: what is kept, what a customer reads, and what never gets into a header."""

from decimal import Decimal
from email import message_from_bytes, policy

import pytest

from services.email.domain import (
    LINES_SHOWN,
    TOLD,
    Letter,
    Status,
    from_row,
    key_of,
    letter_about,
    parts_of,
    postpone,
    to_row,
)
from services.email.message import Contact, NoAddressError, compose
from tests.lib.order_feed import LINE, TRACE, order_event

ANN = Contact("Ann", "ann@example.com")
FROM = "orders@shop.example"


def a_letter(**changes: object) -> Letter:
    return letter_about(order_event("o-1", "PAID", 3, **changes), TRACE)


def mail(state: str = "PAID", contact: Contact = ANN, **changes: object) -> bytes:
    return compose("o-1", state, a_letter(**changes), contact, FROM).as_bytes()


def text_of(data: bytes) -> str:
    return message_from_bytes(data, policy=policy.default).get_content()


@pytest.mark.parametrize("state", sorted(TOLD))
def test_each_told_state_has_a_mail_of_its_own_that_is_the_same_every_time(state: str) -> None:
    data = mail(state)
    assert data == mail(state)
    read = message_from_bytes(data, policy=policy.default)
    assert read["To"] == "Ann <ann@example.com>"
    assert read["Message-ID"] == f"<o-1.{state.lower()}@shop.example>"
    assert read["Date"] == "Thu, 01 Jan 2026 12:00:00 +0000"
    assert "o-1" in read["Subject"]
    assert "2 x item-001 at 2.55" in read.get_content()
    assert "Total: 5.10" in read.get_content()


def test_mails_about_two_states_differ() -> None:
    assert len({mail(state) for state in TOLD}) == len(TOLD)


def test_failed_order_hears_why() -> None:
    reasons = [{"check": "INVENTORY", "code": "OUT_OF_STOCK", "detail": "out of stock: item-001"}]
    assert "  - out of stock: item-001" in text_of(mail("FAILED", reasons=reasons))


def test_long_order_is_cut_short_in_its_mail_and_in_its_row() -> None:
    letter = a_letter(lines=[LINE] * 5000)
    assert len(letter.lines) == LINES_SHOWN
    assert "and 4980 more" in text_of(mail(lines=[LINE] * 5000))


@pytest.mark.parametrize(
    "address", ["", "ann", "@", "a@b@c", "ann@exa mple.com", "ann@example.com\r\nBcc: all@x", "ä@b"]
)
def test_what_is_no_address_gets_no_mail(address: str) -> None:
    with pytest.raises(NoAddressError):
        mail(contact=Contact("Ann", address))


@pytest.mark.parametrize(
    "name", ["Ann\r\nBcc: all@x", "=?utf-8?q?x?=", 'A "B", <c@d>', "Åsa 学", ""]
)
def test_no_name_gets_a_line_into_the_header_or_loses_the_recipient(name: str) -> None:
    read = message_from_bytes(mail(contact=Contact(name, "ann@example.com")), policy=policy.default)
    assert [one.addr_spec for one in read["To"].addresses] == ["ann@example.com"]
    assert read["Bcc"] is None


def test_product_with_line_breaks_stays_on_its_line() -> None:
    lines = [{**LINE, "product_id": "x\n\nTotal: 0.00"}]
    assert "\nTotal: 0.00" not in text_of(mail(lines=lines))


def test_row_gives_the_letter_back_and_of_a_done_one_only_its_status() -> None:
    letter = postpone(a_letter(), 1000)
    assert (letter.due_ms, letter.attempts) == (1200, 1)
    assert from_row(to_row(letter)) == letter
    assert to_row(Letter(Status.SENT, "c", Decimal(1))) == {"status": "SENT"}
    assert from_row({"status": "SENT"}).due_ms is None


def test_key_is_taken_apart_again_whatever_the_id() -> None:
    assert parts_of(key_of("a/b", "PAID")) == ("a/b", "PAID")
