"""Coverage-guided fuzzing of the decoders and every handler, with Atheris, in its own process.

    python -m tests.fuzz.coverage_guided SECONDS SEED [--before-authentication]

It starts with a valid request of every API and version, keeps inputs that reach new code, and
mutates them: by structure if they decode, else by bytes. Atheris exists for Linux only.
"""

import os
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["broker"]):
    from common.kafka.protocol.framing import DecodeError, UnsupportedVersion, decode_request
    from common.kafka.protocol.wire import EncodeError
    from tests.fuzz.in_process import Finding, InProcessNode, in_process_node

from tests.fuzz.mutations import copied, is_harmless, mutate_bytes, mutate_message
from tests.fuzz.valid_requests import APIS, TOKENS, Recorded, valid_requests

BEFORE_AUTHENTICATION = "--before-authentication"
LISTENERS = list(TOKENS if BEFORE_AUTHENTICATION in sys.argv else APIS)
MAX_FRAME_BYTES = 20_000


def main(seconds: int, seed: int) -> None:
    """Fuzz for `seconds`; the process exits with a nonzero status after a finding."""
    with tempfile.TemporaryDirectory() as folder, in_process_node() as node:
        _write_corpus(Path(folder), node)
        arguments = [
            sys.argv[0],
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-max_len={MAX_FRAME_BYTES}",
            f"-artifact_prefix={folder}/",
            "-rss_limit_mb=1500",
            "-timeout=30",
            "-print_final_stats=1",
            folder,
        ]
        atheris.Setup(arguments, lambda data: _try(node, data), custom_mutator=_mutate)
        atheris.Fuzz()


def _write_corpus(folder: Path, node: InProcessNode) -> None:
    for number, request in enumerate(valid_requests(node.world)):
        if request.listener in LISTENERS:
            (folder / f"{number:04d}").write_bytes(
                bytes([LISTENERS.index(request.listener)]) + request.frame()
            )


def _try(node: InProcessNode, data: bytes) -> None:
    if len(data) < 9:
        return
    listener, frame = LISTENERS[data[0] % len(LISTENERS)], data[1:]
    if not is_harmless(frame):
        return
    try:
        node.send(listener, frame)
    except Finding as finding:
        print(f"{finding}\nreplay: {listener}:{frame.hex()}", flush=True)
        os._exit(1)  # Atheris takes half a minute to handle an exception


def _mutate(data: bytes, max_size: int, seed: int) -> bytes:
    random = Random(seed)
    first, frame = data[:1], data[1:]
    if random.random() < 0.6:
        changed = _with_structure(frame, random)
    elif random.random() < 0.5:
        changed = mutate_bytes(frame, random)
    else:
        changed = bytes(atheris.Mutate(frame, max_size - 1))
    return (first + changed)[:max_size]


def _with_structure(frame: bytes, random: Random) -> bytes:
    try:
        header, message = decode_request(frame)
        message = copied(message)
        for _ in range(random.randint(1, 3)):
            mutate_message(message, header.api_version, random)
        again = Recorded("", header.api_key, header.api_version, message)  # type: ignore[arg-type]
        return again.frame()
    except (DecodeError, UnsupportedVersion, EncodeError):
        return mutate_bytes(frame, random)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
