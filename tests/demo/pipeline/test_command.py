"""How the demo ends when it cannot do what it was asked for."""

from pathlib import Path
from typing import Any

import pytest

from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from demo.pipeline import command


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionFailed("127.0.0.1:1: refused"), "millstream demo: 127.0.0.1:1: refused\n"),
        (KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, "no"), "millstream demo: no\n"),
    ],
)
def test_a_kafka_that_cannot_be_used_is_told_in_a_sentence(
    error: Exception,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def run_demo(*_: Any) -> int:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "run_demo", run_demo)
    assert command.main(["--bootstrap", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == said
