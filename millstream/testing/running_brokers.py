"""Faults, time and state of brokers that somebody else started.

They are those of `millstream up --testing`, or of a container.
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from millstream.testing.broker_clock import BrokerClock
from millstream.testing.broker_control import RESTART_SECONDS, BrokerControl
from millstream.testing.faults import Faults
from millstream.testing.requests import Requests

VARIABLE = "KAFKA_CONTROL_URLS"


class RunningBrokers:
    """The brokers whose pages are at these addresses; without any, those of `KAFKA_CONTROL_URLS`.

    At the end of a `with` block a fault that has hit nothing raises UnusedFaultError, and all
    faults end.
    """

    def __init__(self, urls: Sequence[str] = ()) -> None:
        found = urls or os.environ.get(VARIABLE, "").split(",")
        self.urls = [url.rstrip("/") for url in found if url]
        if not self.urls:
            raise ValueError(f"there are no addresses, and {VARIABLE} is not set")
        controls = [BrokerControl(lambda url=url: url) for url in self.urls]  # type: ignore[misc]
        self.faults = Faults(lambda: controls)
        self.requests = Requests(lambda: controls)
        self.clock = BrokerClock(lambda: controls)
        self._controls = controls

    def snapshot(self) -> None:
        """Keep the state of a broker that is a whole cluster, for `restore`."""
        for control in self._controls:
            control.call("POST", "/snapshot", seconds=RESTART_SECONDS)

    def restore(self) -> None:
        """Bring the broker back to its snapshot; its faults end, and all clients reconnect."""
        for control in self._controls:
            control.end_run(can_ask=True)
            control.call("POST", "/restore", seconds=RESTART_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.clear(allow_unused=error is not None)
