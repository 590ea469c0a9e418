"""The settings of a program that serves HTTP."""

from dataclasses import dataclass
from functools import cached_property

from common.http.security import MEANING, HttpSecurity, http_security
from common.process.settings import Checked, setting


@dataclass(frozen=True, kw_only=True)
class HttpSettings(Checked):
    """How HTTP is served, and to whom."""

    http_config: str = setting("", MEANING)

    def __post_init__(self) -> None:
        """Read the file at once; raises ClientSettingsError."""
        super().__post_init__()
        self.http_security  # noqa: B018 - to be refused at the start

    @cached_property
    def http_security(self) -> HttpSecurity:
        """What the file says."""
        return http_security(self.http_config)
