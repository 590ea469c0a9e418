"""One broker for many tests, clean for each of them."""

from typing import Self

from millstream.testing.block import Block
from millstream.testing.broker_control import ControlError
from millstream.testing.local_broker import LocalBroker
from millstream.testing.node_process import BrokerFailedError


class CleanBroker(Block):
    """Owns a broker and its snapshot; a broker that a test has broken is replaced by a new one."""

    def __init__(self) -> None:
        self._broker: LocalBroker | None = None
        self._is_used = False

    def start(self) -> Self:
        """Do nothing: the broker starts when the first test wants it."""
        return self

    def next(self) -> LocalBroker:
        """Return the broker, as it was at its start, at an address that no test before had."""
        broker = self._broker
        if broker is not None and broker.snapshot_count > 1:
            broker.close()  # A test has made a snapshot of its own, instead of the first state.
            broker = None
        if broker is not None and self._is_used:
            try:
                broker.restore(new_port=True)
            except (AssertionError, BrokerFailedError, ControlError, OSError):
                # A test may have closed it, or its folder may be gone.
                broker.close()
                broker = None
        if broker is None:
            broker = self._broker = LocalBroker().start()
            broker.snapshot()
        self._is_used = True
        broker.registry_url = ""
        return broker

    def end(self) -> None:
        """Raise UnusedFaultError if the test has armed a fault that hit nothing."""
        if self._broker is not None:
            self._broker.check()

    def close(self) -> None:
        """Close the broker."""
        if self._broker is not None:
            self._broker.close()
            self._broker = None
