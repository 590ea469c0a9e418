"""A real API server of Kubernetes, with its etcd: it takes manifests, and runs nothing.

`make api-server` builds both from their Go modules into build/api-server; `kubectl` must be there.
"""

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from ssl import create_default_context
from typing import Any

import yaml

from millstream.processes.cluster_layout import free_ports
from tests.lib.waiting import until

_ROOT = Path(__file__).parents[2]
BUILT = _ROOT / "build" / "api-server"
MANIFESTS = _ROOT / "deploy" / "kubernetes"
OVERLAYS = sorted(path.parent.name for path in MANIFESTS.glob("*/kustomization.yaml"))
_TOKEN = "of-the-test"


class NoApiServerError(Exception):
    """There is no API server on this machine; the text says what is missing."""


def manifest(overlay: str) -> str | None:
    """Return what kustomize makes of an overlay; None if there is neither kustomize nor kubectl."""
    for command in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(command[0]) is not None:
            done = subprocess.run(
                [*command, MANIFESTS / overlay], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            return done.stdout
    return None


class ApiServer:
    """What tests ask the server: changes of it are only tried, but for those of `create`."""

    def __init__(self, url: str, certificate: Path) -> None:
        self.url = url
        self.certificate = certificate
        self._options = [
            *("--server", url, "--token", _TOKEN),
            *("--certificate-authority", str(certificate)),
        ]

    def create(self, document: dict[str, object]) -> None:
        """Create an object that others need; raise AssertionError."""
        done = self._kubectl("create", "--filename=-", document=yaml.safe_dump(document))
        assert not done.returncode, done.stderr

    def refusal(self, manifest: str) -> str:
        """Return what the server says against the objects of a manifest; empty if it takes all.

        Unknown and double fields count, and so do warnings.
        """
        done = self._kubectl(
            *("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors"),
            "--filename=-",
            document=manifest,
        )
        return done.stderr if done.returncode else ""

    def token_of(self, account: str, namespace: str) -> str:
        """Return a token that proves to be a service account."""
        return self._said("create", "token", account, f"--namespace={namespace}").strip()

    def pods(self, labels: str, namespace: str) -> list[dict[str, Any]]:
        """Return the pods with these labels."""
        asked = ("get", "pods", f"--selector={labels}", f"--namespace={namespace}", "--output=json")
        found: list[dict[str, Any]] = json.loads(self._said(*asked))["items"]
        return found

    def _said(self, *arguments: str) -> str:
        done = self._kubectl(*arguments)
        assert not done.returncode, done.stderr
        return done.stdout

    def _kubectl(self, *arguments: str, document: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", *self._options, *arguments],
            input=document,
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Run both programs until the block ends, with their files in a folder.

    Raise NoApiServerError if a program is missing.
    """
    programs = {name: _program(name) for name in ("etcd", "kube-apiserver")}
    _program("kubectl")
    ports = free_ports()
    client, peer, secure = (next(ports) for _ in range(3))
    etcd_url = f"http://127.0.0.1:{client}"
    (folder / "tokens.csv").write_text(f'{_TOKEN},admin,1,"system:masters"\n')
    _make_key(folder / "accounts.key")
    etcd = [
        *(programs["etcd"], "--data-dir=etcd", "--unsafe-no-fsync"),
        *(f"--listen-client-urls={etcd_url}", f"--advertise-client-urls={etcd_url}"),
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
    ]
    server = [
        *(programs["kube-apiserver"], f"--etcd-servers={etcd_url}", f"--secure-port={secure}"),
        *("--bind-address=127.0.0.1", "--cert-dir=certificates", "--authorization-mode=RBAC"),
        *("--service-cluster-ip-range=10.0.0.0/24", "--token-auth-file=tokens.csv"),
        *("--service-account-issuer=https://none", "--service-account-key-file=accounts.key"),
        "--service-account-signing-key-file=accounts.key",
        # Nothing creates the account that it would ask for.
        "--disable-admission-plugins=ServiceAccount",
    ]
    with _running(folder, etcd), _running(folder, server):
        url, certificate = f"https://127.0.0.1:{secure}", folder / "certificates/apiserver.crt"
        until(lambda: _is_ready(url, certificate), shown=lambda: _last_words(folder))
        yield ApiServer(url, certificate)


def _program(name: str) -> str:
    found = shutil.which(name, path=str(BUILT)) or shutil.which(name)
    if found is None:
        raise NoApiServerError(f"needs {name}: `make api-server` builds it (kubectl apart)")
    return found


def _make_key(file: Path) -> None:
    subprocess.run(["openssl", "genrsa", "-out", file, "2048"], capture_output=True, check=True)


@contextmanager
def _running(folder: Path, command: list[str]) -> Iterator[None]:
    with ExitStack() as stack:
        log = stack.enter_context((folder / f"{Path(command[0]).name}.log").open("w"))
        process = stack.enter_context(subprocess.Popen(command, cwd=folder, stdout=log, stderr=log))
        stack.callback(process.terminate)
        yield


def _is_ready(url: str, certificate: Path) -> bool:
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {_TOKEN}"})
    try:
        trusted = create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(request, context=trusted) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _last_words(folder: Path) -> str:
    said = {each.name: each.read_text()[-500:] for each in sorted(folder.glob("*.log"))}
    return json.dumps(said, indent=1)
