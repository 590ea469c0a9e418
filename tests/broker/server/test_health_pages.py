"""The broker's own web pages, on the event loop that the broker really runs on."""

import urllib.error
import urllib.request

import pytest

from millrace.testing import LocalBroker


def test_health_and_metrics_are_served() -> None:
    with LocalBroker() as broker:
        for path in ("/health/live", "/health/ready", "/metrics"):
            with urllib.request.urlopen(broker.http_url + path) as answer:
                assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="404") as refusal:
            urllib.request.urlopen(broker.http_url + "/nowhere")
        assert refusal.value.headers["content-type"] == "application/problem+json"
        refusal.value.close()
