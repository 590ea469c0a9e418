"""The keys of an OAuth issuer: read from a file or fetched from a URL, again when they may be new.

They are read at the start, every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and when a token
names an unknown key, at most once in UNKNOWN_KEY_SECONDS. Such a token is refused; its client tries
again. A failed fetch is repeated with growing pauses, and the keys so far stay.

A fetch runs in a thread of its own, because it waits for another program. It is given up after
GIVE_UP_SECONDS whatever the other program does.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from http.client import HTTPException
from urllib.request import Request

from broker.config.oauth_config import OauthConfig
from broker.security.jwks import KeySet, UnknownKey, parse_key_set
from broker.security.oauthbearer import TokenClaims
from broker.server.clock import Clock
from common.credentials.fetching import fetched

log = logging.getLogger("millstream.authentication")

GIVE_UP_SECONDS = 30.0
UNKNOWN_KEY_SECONDS = 10.0

Fetched = KeySet | Exception
Read = Callable[[OauthConfig], Fetched]


class IssuerKeys:
    """Owns the keys of one listener. Invariant: the result of one fetch at a time counts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: OauthConfig,
        clock: Clock,
        read: "Read | None" = None,
    ) -> None:
        """`read` returns the keys, or why there are none; it may wait."""
        self._loop = loop
        self._config = config
        self._clock = clock
        self._read = read or read_keys
        self._keys = KeySet([])
        self._number = 0
        self._failures = 0
        self._begun_at_ms = 0
        self._is_fetching = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to fetch the keys, and to do so again and again."""
        if self._timer is not None:
            self._timer.cancel()
        self._number += 1
        self._is_fetching = True
        self._begun_at_ms = self._clock.now_ms()
        number = self._number
        given_up = TimeoutError("the answer takes too long")
        self._timer = self._loop.call_later(GIVE_UP_SECONDS, self._on_fetched, number, given_up)
        # Not a thread of the loop's pool: the end of the process would wait for it.
        threading.Thread(target=self._fetch, args=(number,), daemon=True).start()

    def _fetch(self, number: int) -> None:
        fetched = self._read(self._config)
        try:
            self._loop.call_soon_threadsafe(self._on_fetched, number, fetched)
        except RuntimeError:  # The loop has ended meanwhile.
            return

    def _on_fetched(self, number: int, fetched: Fetched) -> None:
        if number != self._number or not self._is_fetching:
            return
        self._is_fetching = False
        if isinstance(fetched, KeySet):
            self._keys, self._failures = fetched, 0
            log.debug("keys of the issuer read url=%s count=%d", self._config.url, len(fetched))
        else:
            self._failures += 1
            log.error("keys of the issuer not read url=%s error=%s", self._config.url, fetched)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._pause_ms() / 1_000, self.start)

    def _pause_ms(self) -> int:
        """Return the time until the next fetch: growing pauses after failures."""
        config = self._config
        if not self._failures:
            return config.refresh_ms
        growth = 2 ** min(self._failures - 1, 20)
        pause_ms: int = min(config.retry_ms * growth, config.retry_max_ms, config.refresh_ms)
        return pause_ms

    def validate(self, token: str) -> TokenClaims:
        """Return the content of a token; raises InvalidToken."""
        try:
            return self._keys.verify(token, self._config.rules, self._clock.timestamp_ms())
        except UnknownKey:
            since_ms = self._clock.now_ms() - self._begun_at_ms
            is_waiting = self._is_fetching or self._failures
            if not is_waiting and since_ms >= UNKNOWN_KEY_SECONDS * 1_000:
                self.start()
            raise


def read_keys(config: OauthConfig) -> Fetched:
    """Read a key set, bounded in size and time; return the error if that fails."""
    try:
        return parse_key_set(fetched(Request(config.url), config.truststore))
    except (OSError, ValueError, HTTPException) as error:
        return error
