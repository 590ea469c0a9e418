"""The manifests, given to a real API server, which says what Kubernetes would say against them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml

from spark_analytics.java import java_home
from tests.lib.kubernetes_api import (
    MANIFESTS,
    OVERLAYS,
    ApiServer,
    NoApiServerError,
    api_server,
    manifest,
)
from tests.lib.waiting import until

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


SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
IMAGE = "spark.kubernetes.container.image=shop/spark"
PROPERTIES = ("--properties-file", "deploy/kubernetes/spark/spark.properties")
WITHOUT_TEMPLATE = ("--deploy-mode", "cluster", "--conf", "spark.kubernetes.namespace=millstream")


@pytest.fixture(scope="module")
def with_rights(server: ApiServer) -> ApiServer:
    """The server with the rights of Spark's drivers, and a user `ann` who may submit jobs."""
    for each in objects("spark"):
        if each["kind"] in {"ServiceAccount", "Role", "RoleBinding"}:
            server.create(each)
    group, where = "rbac.authorization.k8s.io", {"name": "ann", "namespace": "millstream"}
    server.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where})
    server.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": where,
            "subjects": [{"kind": "ServiceAccount", "name": "ann"}],
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "spark-submit"},
        }
    )
    return server


def spark_submit(server: ApiServer, *arguments: str) -> list[str]:
    return [str(SPARK_SUBMIT), "--master", f"k8s://{server.url}", "--conf", IMAGE, *arguments]


def authenticated(server: ApiServer, account: str, names: str) -> list[str]:
    token = server.token_of(account, "millstream")
    told = {f"{names}oauthToken": token, f"{names}caCertFile": str(server.certificate)}
    return [part for name, value in told.items() for part in ("--conf", f"{name}={value}")]


def spark_environment() -> dict[str, str]:
    java = str(java_home(os.environ))
    return {**os.environ, "JAVA_HOME": java, "PYSPARK_PYTHON": sys.executable, "KUBECONFIG": ""}


def submit(server: ApiServer, *how: str) -> subprocess.CompletedProcess[str]:
    """Submit a job as ann does, and do not wait for it: nothing here runs pods."""
    return subprocess.run(
        spark_submit(
            server,
            *how,
            *authenticated(server, "ann", "spark.kubernetes.authenticate.submission."),
            *("--conf", "spark.kubernetes.submission.waitAppCompletion=false"),
            *("--name", "revenue", "local:///opt/jobs/revenue.py"),
            *("--bootstrap-servers", "kafka:29092"),
        ),
        cwd=MANIFESTS.parent.parent,
        env=spark_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_spark_submit_makes_a_driver_that_keeps_the_rules(with_rights: ApiServer) -> None:
    refused = submit(with_rights, *WITHOUT_TEMPLATE)
    assert refused.returncode
    assert 'violates PodSecurity "restricted:latest"' in refused.stderr
    done = submit(with_rights, *PROPERTIES)
    assert done.returncode == 0, done.stderr[-3000:]
    (driver,) = with_rights.pods("spark-role=driver", "millstream")
    assert driver["spec"]["serviceAccountName"] == "spark"
    (container,) = driver["spec"]["containers"]
    assert container["image"] == "shop/spark"
    assert container["args"][-2:] == ["--bootstrap-servers", "kafka:29092"]
    told = {each["name"]: each.get("value") for each in container["env"]}
    assert told["PYSPARK_PYTHON"] == told["PYSPARK_DRIVER_PYTHON"] == "python3"


def test_a_driver_makes_executors_and_takes_them_away(
    with_rights: ApiServer, tmp_path: Path
) -> None:
    """The driver runs here, with the rights that it has in its pod."""
    job, may_end = tmp_path / "job.py", tmp_path / "may-end"
    job.write_text(
        "import pathlib, sys, time\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "while not pathlib.Path(sys.argv[1]).exists():\n"
        "    time.sleep(0.1)\n"
        "spark.stop()\n"
    )
    command = spark_submit(
        with_rights,
        *PROPERTIES,
        *authenticated(with_rights, "spark", "spark.kubernetes.authenticate."),
        *("--deploy-mode", "client", "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *(str(job), str(may_end)),
    )

    def executors() -> list[dict[str, Any]]:
        return with_rights.pods("spark-role=executor", "millstream")

    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            command,
            cwd=MANIFESTS.parent.parent,
            env=spark_environment(),
            stdout=log,
            stderr=log,
        ) as driver,
    ):
        try:
            said = (tmp_path / "log").read_text
            until(lambda: len(executors()) == 2, 120, shown=lambda: said()[-3000:])
            assert {each["spec"]["securityContext"]["runAsUser"] for each in executors()} == {185}
            may_end.touch()
            driver.wait(120)
        finally:
            driver.kill()
    assert driver.returncode == 0
    assert executors() == []
    assert [line for line in said().splitlines() if "forbidden" in line] == []
