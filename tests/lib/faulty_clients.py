"""Programs of users with each stock client, beside a broker that fails; each is one process.

`tests/lib/python_calls.py` describes what they do and say.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Final, Self

from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import JAVA, java_program
from tests.lib.other_languages import GO, TYPESCRIPT, go_program, typescript_program
from tests.lib.python_calls import READ_SECONDS

Command = list[str | Path]
ROOT: Final = Path(__file__).parents[2]
READY: Final = ("! ready", "? ready")
"""At the second one the program waits for a line."""
END_SECONDS: Final = 10.0


def _python(name: str) -> Callable[[], Command]:
    return lambda: [sys.executable, "-W", "ignore", "-m", "tests.lib.python_calls", name]


COMMANDS: Final[Mapping[str, Callable[[], Command]]] = MappingProxyType(
    {
        "confluent-kafka": _python("confluent-kafka"),
        "aiokafka": _python("aiokafka"),
        "kafka-python": _python("kafka-python"),
        "Java": lambda: [*java_program(kafka_libs(), JAVA / "RunFaultyCalls.java", "-Xmx256m")],
        "franz-go": lambda: [go_program(GO / "faultycalls")],
        "KafkaJS": lambda: ["node", typescript_program(TYPESCRIPT / "faultyCalls.ts")],
    }
)
CLIENTS: Final = tuple(COMMANDS)


class FaultyClient:
    """The program of one client. One that has ended is started again by the next call."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._program: subprocess.Popen[str] | None = None
        self._said = TemporaryFile()  # noqa: SIM115 - closed at the end of the block

    def ask(self, *words: str, when_ready: Callable[[], object] = lambda: None) -> str:
        """Return what the program sees; `when_ready` is called in the middle, where it has one.

        Raise RuntimeError if the program ends without an answer, also because it takes too long.
        """
        program = self._running()
        assert program.stdin is not None
        assert program.stdout is not None
        limit = threading.Timer(3 * READ_SECONDS, program.kill)
        limit.start()
        try:
            program.stdin.write("\t".join(words) + "\n")
            program.stdin.flush()
            for line in program.stdout:
                if line.startswith("> "):
                    return line.removeprefix("> ").removesuffix("\n")
                if line.rstrip() not in READY:
                    continue
                when_ready()
                if line.startswith("?"):
                    program.stdin.write("go on\n")
                    program.stdin.flush()
        except BaseException:
            program.kill()  # It may answer later, and then not to what it is asked next.
            raise
        finally:
            limit.cancel()
        self._said.seek(0)
        raise RuntimeError(f"{words}: no answer: {self._said.read()[-4_000:].decode()}")

    def _running(self) -> subprocess.Popen[str]:
        if self._program is None or self._program.poll() is not None:
            self.close()
            self._program = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                text=True,
                cwd=ROOT,
            )
        return self._program

    def close(self) -> None:
        """End the program, which ends at the end of its input."""
        if self._program is None:
            return
        try:
            self._program.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.communicate()
        self._program = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._said.close()
