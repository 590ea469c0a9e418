"""Faults in brokers that somebody else started: by `millstream up --testing`, in a container."""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from millstream.testing.broker_control import BrokerControl
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.clear(allow_unused=error is not None)
