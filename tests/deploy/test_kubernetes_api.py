"""The manifests, given to a real API server, which says what Kubernetes would say against them."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lib.kubernetes_api import OVERLAYS, ApiServer, NoApiServerError, api_server, manifest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that has the namespace of the manifests, and nothing else."""
    try:
        with api_server(tmp_path_factory.mktemp("api-server")) as running:
            (namespace,) = (each for each in objects("base") if each["kind"] == "Namespace")
            running.create(namespace)
            yield running
    except NoApiServerError as error:
        pytest.skip(str(error))


def objects(overlay: str) -> list[dict[str, Any]]:
    """Return the objects of an overlay, but for those whose kind KEDA brings."""
    found = [*yaml.safe_load_all(manifest(overlay) or "")]
    return [each for each in found if not each["apiVersion"].startswith("keda.sh/")]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_server_takes_every_object(server: ApiServer, overlay: str) -> None:
    assert server.refusal(yaml.safe_dump_all(objects(overlay))) == ""


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_keeps_the_rules_of_its_namespace(server: ApiServer, overlay: str) -> None:
    # A Deployment is taken though its pods would be refused: so each is shown a pod of it.
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": each["metadata"]["name"],
                "namespace": each["metadata"]["namespace"],
            },
            "spec": each["spec"]["template"]["spec"] | volumes(each),
        }
        for each in objects(overlay)
        if "template" in each.get("spec", {})
    ]
    assert len(pods) > 10
    assert server.refusal(yaml.safe_dump_all(pods)) == ""


def volumes(of: dict[str, Any]) -> dict[str, Any]:
    """Return the volumes of a pod, with those that a StatefulSet claims for each of its pods."""
    claimed = [
        {"name": claim["metadata"]["name"], "emptyDir": {}}
        for claim in of["spec"].get("volumeClaimTemplates", [])
    ]
    return {"volumes": [*of["spec"]["template"]["spec"].get("volumes", []), *claimed]}


def test_what_is_wrong_is_refused(server: ApiServer) -> None:
    (brokers,) = (each for each in objects("base") if each["kind"] == "StatefulSet")
    template = brokers["spec"]["template"]
    template["metadata"]["labels"] = {"app": "another"}
    assert "does not match template `labels`" in server.refusal(yaml.safe_dump(brokers))
    template["metadata"]["labels"] = {"app": "broker"}
    template["spec"]["containers"][0]["privileged"] = True
    assert "unknown field" in server.refusal(yaml.safe_dump(brokers))
