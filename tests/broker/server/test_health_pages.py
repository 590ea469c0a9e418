"""The broker's own web pages, on the event loop that the broker really runs on."""

import urllib.error
import urllib.request

import pytest

from millstream.testing import LocalBroker


def test_health_and_metrics_are_served() -> None:
    with LocalBroker() as broker:
        for path in ("/health/live", "/health/ready", "/health/in-sync", "/metrics"):
            with urllib.request.urlopen(broker.http_url + path) as answer:
                assert answer.status == 200
        browser = urllib.request.Request(broker.http_url, headers={"Accept": "text/html,*/*"})
        with urllib.request.urlopen(browser) as answer:
            page = answer.read().decode()
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "<h1>Broker 1</h1>" in page
        assert f"--bootstrap-server {broker.bootstrap_servers} --list" in page
        # Programs are told what they always were.
        with pytest.raises(urllib.error.HTTPError, match="404") as refusal:
            urllib.request.urlopen(broker.http_url)
        refusal.value.close()
        with pytest.raises(urllib.error.HTTPError, match="404") as refusal:
            urllib.request.urlopen(broker.http_url + "/nowhere")
        assert refusal.value.headers["content-type"] == "application/problem+json"
        refusal.value.close()
        with pytest.raises(urllib.error.HTTPError, match="405") as refusal:
            urllib.request.urlopen(broker.http_url + "/metrics", data=b"")
        # RFC 9110, 15.5.6
        assert refusal.value.headers["allow"] == "GET, HEAD"
        refusal.value.close()
