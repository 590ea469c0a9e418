"""The well-behaved client beside the fuzzer: it asks again and again on one connection each time.

A server's CPU time during one of its requests is the delay that the fuzzer causes; the wall-clock
time is reported as well, since on a busy machine it is not the server's fault.
"""

import http.client
import os
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

TIMEOUT_SECONDS = 20.0
PAUSE_SECONDS = 0.01


class Neighbour:
    """Runs on its own thread from `start` to `stop`; `problem` is the first error."""

    def __init__(self, port: int, pid: int, path: str) -> None:
        self._port, self._pid, self._path = port, pid, path
        self._stopped = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.problem: str | None = None
        self.rounds = 0
        self.longest_seconds = 0.0
        self.most_computed_seconds = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(TIMEOUT_SECONDS * 2)
        if self._thread.is_alive():
            self.problem = self.problem or "the well-behaved client waits for an answer"

    def _run(self) -> None:
        try:
            while not self._stopped.wait(PAUSE_SECONDS):
                self._round()
        except (OSError, http.client.HTTPException, AssertionError) as error:
            self.problem = f"the well-behaved client, after {self.rounds} rounds: {error!r}"

    def _round(self) -> None:
        begun, computed = time.perf_counter(), processor_seconds(self._pid)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", self._path)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
        finally:
            connection.close()
        self.rounds += 1
        self.longest_seconds = max(self.longest_seconds, time.perf_counter() - begun)
        computed = processor_seconds(self._pid) - computed
        self.most_computed_seconds = max(self.most_computed_seconds, computed)


def processor_seconds(pid: int) -> float:
    """Return the CPU time of a process; 0 if it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    return 0
