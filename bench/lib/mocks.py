"""Mocks of Kafka to measure beside: librdkafka's mock cluster, and franz-go's kfake.

Both answer without a log, and are written for the tests of their client.
"""

import ctypes
import subprocess
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka

from bench.lib.servers import ROOT

PRODUCE = 0
TOPIC_AUTHORIZATION_FAILED = 29
KFAKE = ROOT / "bench" / "bin" / "kfake"


class Mock(Protocol):
    """One broker that can be had again and again."""

    def start(self) -> str:
        """Start a new one; return its address."""
        ...

    def fail(self) -> None:
        """Refuse the next Produce with TOPIC_AUTHORIZATION_FAILED."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class RdkafkaMock:
    """librdkafka's mock cluster, in this process, by the C interface of rdkafka_mock.h."""

    def __init__(self) -> None:
        """Raise LookupError if confluent-kafka has no librdkafka of its own."""
        package = Path(confluent_kafka.__file__).parent
        found = sorted((package.parent / "confluent_kafka.libs").glob("librdkafka*.so*"))
        if not found:
            raise LookupError("confluent-kafka has no librdkafka of its own here")
        self._library = ctypes.CDLL(str(found[0]))
        for name in ("conf_new", "new", "mock_cluster_new", "mock_cluster_bootstraps"):
            self._call(name).restype = ctypes.c_void_p
        settings = ctypes.c_void_p(self._call("conf_new")())
        said = ctypes.create_string_buffer(512)
        self._call("conf_set")(settings, b"log_level", b"0", said, ctypes.c_size_t(len(said)))
        self._handle = ctypes.c_void_p(self._call("new")(0, settings, said, len(said)))
        self._cluster = ctypes.c_void_p()

    def _call(self, name: str) -> Any:
        return getattr(self._library, f"rd_kafka_{name}")

    def start(self) -> str:
        """Start a cluster of one broker."""
        self._cluster = ctypes.c_void_p(self._call("mock_cluster_new")(self._handle, 1))
        address = ctypes.c_char_p(self._call("mock_cluster_bootstraps")(self._cluster)).value
        assert address is not None
        return address.decode()

    def fail(self) -> None:
        """Refuse the next Produce."""
        errors = (ctypes.c_int * 1)(TOPIC_AUTHORIZATION_FAILED)
        push = self._call("mock_push_request_errors_array")
        push(self._cluster, ctypes.c_int16(PRODUCE), ctypes.c_size_t(1), errors)

    def close(self) -> None:
        """End the cluster."""
        self._call("mock_cluster_destroy")(self._cluster)


class Kfake:
    """kfake, in a process of its own, which ends with this one."""

    def __init__(self) -> None:
        """Raise LookupError if there is no Go, or no kfake to be had."""
        KFAKE.parent.mkdir(exist_ok=True)
        command = ["go", "build", "-o", str(KFAKE), "."]
        try:
            subprocess.run(command, cwd=ROOT / "bench" / "lib" / "kfake", check=True)
        except (OSError, subprocess.CalledProcessError) as failed:
            raise LookupError(f"kfake cannot be built: {failed}") from None
        pipe = subprocess.PIPE
        self._program = subprocess.Popen([KFAKE], stdin=pipe, stdout=pipe, text=True)

    def _ask(self, what: str) -> str:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{what}\n")
        self._program.stdin.flush()
        return self._program.stdout.readline().strip()

    def start(self) -> str:
        """Start a cluster of one broker."""
        return self._ask("start")

    def fail(self) -> None:
        """Refuse the next Produce."""
        self._ask("fail")

    def close(self) -> None:
        """End the cluster."""
        self._ask("close")
