"""Settings of the email service."""

from dataclasses import dataclass

from common.process.settings import setting
from common.processing.settings import Settings


@dataclass(frozen=True, kw_only=True)
class EmailSettings(Settings):
    """The settings that only the email service has."""

    mailbox: str = setting(
        "mailbox", "where mails go: a folder, or smtp://, smtp+starttls://, smtps:// user:pass@host"
    )
    mail_from: str = setting("orders@millstream.example", "the address mails come from")
    batch_interval_ms: int = setting(
        250,
        "a batch is begun at most this often, unless one is full: a mail may come a moment later",
    )
