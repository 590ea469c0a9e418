"""The load: the operations of clients during the faults.

The pulse keeps one send in flight on every key, independent of the others: it shows whether a
partition makes progress. The workers do all kinds of operations, each with its own stock client, in
an order that the seed decides.
"""

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.chaos.clients import Client, confluent_producer, delivery, place_of
from tests.chaos.history import Key, Kind, Outcome, Value
from tests.chaos.recorder import Outcomes, Recorder

PULSE_PAUSE_SECONDS = 0.05
STEP_PAUSE_SECONDS = 0.02
"""The pause between two operations, so that the load leaves processor time to the cluster."""
CRASH_PAUSE_SECONDS = 0.1
SUBSCRIBE_OR_ASSIGN, CRASH, SEND = 1 / 64, 1 / 256, 0.5


class Pulse(threading.Thread):
    """A process for each key, numbered from `first_process`; all share one producer."""

    def __init__(
        self, bootstrap: str, keys: Sequence[Key], recorder: Recorder, first_process: int
    ) -> None:
        super().__init__(name="pulse", daemon=True)
        self._producer = confluent_producer(bootstrap)
        self._process_of = {key: first_process + number for number, key in enumerate(keys)}
        self._recorder = recorder
        self._idle = set(keys)
        self._is_stopping = threading.Event()

    def run(self) -> None:
        """Send until `stop`, and wait for the outstanding sends."""
        while not self._is_stopping.is_set():
            for key in sorted(self._idle):
                self._send(key)
            self._producer.poll(PULSE_PAUSE_SECONDS)
            self._is_stopping.wait(PULSE_PAUSE_SECONDS)
        self._producer.flush()

    def stop(self) -> None:
        """Stop sending, and wait until every send has an outcome."""
        self._is_stopping.set()
        self.join()

    def _send(self, key: Key) -> None:
        value, start_ms = self._recorder.next_value(), self._recorder.now_ms()
        topic, partition = place_of(key)

        def delivered(error: Any, message: Any) -> None:
            done = delivery(key, value, error, message)
            self._recorder.add(self._process_of[key], Kind.SEND, start_ms, done)
            self._idle.add(key)

        self._idle.discard(key)
        self._producer.produce(topic, b"%d" % value, partition=partition, on_delivery=delivered)


class Worker(threading.Thread):
    """One process that sends, polls, assigns, subscribes and crashes."""

    def __init__(
        self,
        process: int,
        make: Callable[[], Client],
        keys: Sequence[Key],
        recorder: Recorder,
        source: random.Random,
    ) -> None:
        super().__init__(name=f"worker-{process}", daemon=True)
        self._process = process
        self._make = make
        self._keys = list(keys)
        self._recorder = recorder
        self._source = source
        self._client: Client | None = None
        # None for a group member; otherwise the positions of the assigned keys.
        self._positions: dict[Key, int | None] | None = {}
        self._is_stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Do one operation after the other until `stop`."""
        try:
            while not self._is_stopping.wait(STEP_PAUSE_SECONDS):
                self.step()
            self._crash("the run is over")
        except BaseException as error:  # noqa: BLE001 - the run tells it, and fails
            self.failure = error

    def stop(self) -> None:
        """Request a stop; `join` waits for it."""
        self._is_stopping.set()

    def step(self) -> None:
        """Do one operation."""
        draw = self._source.random()
        if self._positions == {} or draw < SUBSCRIBE_OR_ASSIGN:
            self._choose_keys()
        elif draw < SUBSCRIBE_OR_ASSIGN + CRASH:
            self._crash("")
        elif draw < SUBSCRIBE_OR_ASSIGN + CRASH + SEND:
            self._send(self._source.choice(self._keys), self._recorder.next_value())
        else:
            self._poll()

    def _made(self) -> Client:
        if self._client is None:
            self._client = self._make()
        return self._client

    def _send(self, key: Key, value: Value) -> None:
        start_ms = self._recorder.now_ms()
        done = self._made().send(key, value)
        self._recorder.add(self._process, Kind.SEND, start_ms, done)
        if done.outcome is not Outcome.OK:
            self._crash(done.error)

    def _poll(self) -> None:
        start_ms = self._recorder.now_ms()
        done = self._made().poll()
        self._recorder.add(self._process, Kind.POLL, start_ms, done)
        if self._positions is not None:
            for found in done.reads:
                self._positions[found.key] = found.offset + 1
        if done.outcome is not Outcome.OK:
            self._crash(done.error)

    def _choose_keys(self) -> None:
        start_ms = self._recorder.now_ms()
        if self._source.random() < 1 / 3:
            kind, chosen, moved = Kind.SUBSCRIBE, self._keys, self._keys
            self._positions = None
        else:
            kind = Kind.ASSIGN
            chosen = self._source.sample(self._keys, self._source.randint(1, len(self._keys)))
            before = self._positions or {}
            self._positions = {key: before.get(key) for key in chosen}
            moved = [key for key in chosen if key not in before]
        error = self._position()
        done = Outcomes(Outcome.INFO if error else Outcome.OK, rebalanced=tuple(moved), error=error)
        self._recorder.add(self._process, kind, start_ms, done, chosen)
        if error:
            self._crash(error)

    def _position(self) -> str:
        topic, _ = place_of(self._keys[0])
        try:
            if self._positions is None:
                self._made().subscribe(topic)
            else:
                self._made().assign(self._positions)
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            return repr(error)
        return ""

    def _crash(self, why: str) -> None:
        start_ms = self._recorder.now_ms()
        if self._client is not None:
            self._client.close()
        self._client, self._positions = None, {}
        self._recorder.add(self._process, Kind.CRASH, start_ms, Outcomes(Outcome.OK, error=why))
        if why:
            # No broker is reachable: pause before the next operation.
            self._is_stopping.wait(CRASH_PAUSE_SECONDS)
