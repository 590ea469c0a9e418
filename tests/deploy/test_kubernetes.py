"""The manifests, held against the programs they start; no Kubernetes is started.

`kustomize` or `kubectl`, where one is, builds every overlay; what it would merge is merged here by
hand for the brokers alone, whose environment is the largest part.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.config.broker_config import BrokerConfig
from broker.config.sources import collect_settings
from broker.raft.voter_set import Endpoint
from broker.server.quorum.initial_controllers import read_initial_controllers
from broker.server.quorum.voters import controller_endpoints
from millstream.cli.commands import SERVICES
from tests.lib.kubernetes_api import MANIFESTS, OVERLAYS, manifest

ROOT = Path(__file__).parents[2]
BASE = MANIFESTS / "base"


def documents() -> list[dict[str, Any]]:
    """Return the objects of the base, as its list of resources names them."""
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [each for name in listed for each in yaml.safe_load_all((BASE / name).read_text())]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in documents() if each["kind"] == kind}


def pod_environment(number: int, overlay: str = "") -> dict[str, str]:
    """Return a broker's variables as Kubernetes sets them in the pod of that number."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    (container,) = of_kind("StatefulSet")["broker"]["spec"]["template"]["spec"]["containers"]
    env = list(container["env"])
    if overlay:
        for patch in yaml.safe_load((MANIFESTS / overlay / "kustomization.yaml").read_text())[
            "patches"
        ]:
            changed = yaml.safe_load(patch["patch"])
            if changed["kind"] == "StatefulSet":
                (one,) = changed["spec"]["template"]["spec"]["containers"]
                env += one["env"]
    of_pod = {
        "metadata.name": f"broker-{number}",
        "metadata.labels['apps.kubernetes.io/pod-index']": str(number),
        "metadata.labels['topology.kubernetes.io/zone']": "zone-a",
    }
    found = {"KAFKA_LOG_DIRS": "/data", "KAFKA_HTTP_LISTENER": "0.0.0.0:9644"}
    assert all(f"{name}={value}" in dockerfile for name, value in found.items())
    for each in env:
        value = each.get("value") or of_pod[each["valueFrom"]["fieldRef"]["fieldPath"]]
        found[each["name"]] = value.replace("$(POD_NAME)", f"broker-{number}")
    return found


@pytest.mark.parametrize("number", range(3))
def test_the_broker_understands_its_variables(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    environment = pod_environment(number)
    settings = collect_settings(file=None, environment=environment, overrides=[])
    config = BrokerConfig.from_settings(settings)
    assert caplog.text == ""  # It warns of a variable that names no setting.
    assert (config.node_id, config.rack) == (number, "zone-a")
    advertised = {place.name: (place.host, place.port) for place in config.advertised_listeners}
    assert advertised == {
        "PLAINTEXT": (f"broker-{number}.brokers", 29092),
        "OUTSIDE": (f"broker-{number}-outside", 9092),
    }
    voters = read_initial_controllers(environment["INITIAL_CONTROLLERS"])
    assert [each.node_id for each in voters] == [0, 1, 2]
    assert [(each.host, each.port) for each in voters] == [*config.bootstrap_servers]
    endpoint = Endpoint("CONTROLLER", f"broker-{number}.brokers", 29093)
    assert controller_endpoints(config, {}) == (endpoint,)


@pytest.mark.parametrize("overlay", ["one-node", "secure"])
def test_what_an_overlay_sets_is_understood(overlay: str, caplog: pytest.LogCaptureFixture) -> None:
    environment = pod_environment(0, overlay)
    settings = collect_settings(file=None, environment=environment, overrides=[])
    assert caplog.text == ""
    if overlay == "secure":
        expected = {"SASL_SSL", "OUTSIDE"}
        assert {listener.split(":")[0] for listener in settings["listeners"].split(",")} == {
            *expected,
            "CONTROLLER",
        }
    else:
        assert BrokerConfig.from_settings(settings).replication_factor == 1
        assert len(read_initial_controllers(environment["INITIAL_CONTROLLERS"])) == 1


def test_every_advertised_name_is_a_service() -> None:
    services = of_kind("Service")
    assert of_kind("StatefulSet")["broker"]["spec"]["serviceName"] == "brokers"
    for name in ("brokers", *(f"broker-{number}-outside" for number in range(3))):
        # They find each other, and clients them, before they are ready.
        assert services[name]["spec"]["publishNotReadyAddresses"] is True
    for number in range(3):
        selector = services[f"broker-{number}-outside"]["spec"]["selector"]
        assert selector["statefulset.kubernetes.io/pod-name"] == f"broker-{number}"


def test_services_lead_to_pods_and_ports_that_are_there() -> None:
    program = yaml.safe_load((BASE / "program.yaml").read_text())
    common = program["spec"]["template"]["spec"]["containers"][0]["ports"]
    ports = {}
    for each in (*of_kind("Deployment").values(), *of_kind("StatefulSet").values()):
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"] == labels
        (container,) = each["spec"]["template"]["spec"]["containers"]
        named = [*common, *container.get("ports", [])]
        ports[labels["app"]] = {port["name"] for port in named}
    for service in of_kind("Service").values():
        app = service["spec"]["selector"]["app"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports[app]


def test_every_program_has_its_deployment() -> None:
    started = {
        name: each["spec"]["template"]["spec"]["containers"][0]["args"]
        for name, each in of_kind("Deployment").items()
    }
    assert {name: started[name] for name in SERVICES} == {
        name: ["service", name] for name in SERVICES
    }
    assert set(started) == {*SERVICES, "registry", "connect", "lag"}


def test_a_rolling_update_waits_until_a_broker_is_in_sync() -> None:
    pod = of_kind("StatefulSet")["broker"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/in-sync"
    # It never asks for others: a broker that waits for its peers is not ill.
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    # What Kubernetes would say of its services, such as KAFKA_PORT, reads as a setting.
    assert pod["enableServiceLinks"] is False
    assert of_kind("PodDisruptionBudget")["broker"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_builds_it(overlay: str) -> None:
    built = manifest(overlay)
    if built is None:
        pytest.skip("neither kustomize nor kubectl is on the PATH")
    for each in yaml.safe_load_all(built):
        for container in (
            each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
        ):
            names = [port["name"] for port in container["ports"]]
            assert len(names) == len(set(names)), (each["metadata"]["name"], names)
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
