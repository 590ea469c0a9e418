"""A Kerberos realm of one KDC on a free port, with the programs of Debian's packages."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pytest

from millstream.processes.cluster_layout import free_ports

REALM = "TEST.EXAMPLE"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
SEARCHED = f"/usr/sbin:/sbin:{os.environ.get('PATH', '')}"
START_SECONDS = 20


class Realm:
    """A running realm: it makes principals with their keys in files."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.configuration = folder / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """What programs need to find the realm."""
        return {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5RCACHETYPE": "none",
        }

    def add(self, principal: str) -> Path:
        """Make a principal, and return the file with its key."""
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "-q", f"addprinc -randkey {principal}@{REALM}")
        self.run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}@{REALM}")
        return keytab

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_found(program), *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr


def why_no_realm() -> str:
    """Return what is missing to run a realm; empty if nothing is."""
    if find_spec("gssapi") is None:
        return "no package gssapi: pip install 'millstream[kerberos]'"
    missing = [each for each in PROGRAMS if shutil.which(each, path=SEARCHED) is None]
    if missing:
        return f"no {missing[0]}: apt-get install krb5-kdc krb5-admin-server krb5-user"
    return ""


def _found(program: str) -> str:
    found = shutil.which(program, path=SEARCHED)
    assert found is not None, program
    return found


@contextmanager
def running_realm(folder: Path) -> Iterator[Realm]:
    """Run a realm until the block ends; skips the test where there are no programs for it."""
    reason = why_no_realm()
    if reason:
        pytest.skip(reason)
    kdc = _found(PROGRAMS[0])
    (port,) = islice(free_ports(), 1)
    realm = Realm(folder, port)
    realm.configuration.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n"
        " dns_lookup_realm = false\n rdns = false\n dns_canonicalize_hostname = false\n"
        f" udp_preference_limit = 1\n[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        f"[domain_realm]\n localhost = {REALM}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {folder}/principal\n"
        f"  key_stash_file = {folder}/stash\n  acl_file = {folder}/kadm5.acl\n }}\n"
        f"[logging]\n kdc = FILE:{folder}/kdc.log\n"
    )
    realm.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    process = subprocess.Popen(
        [kdc, "-n"],
        env={**os.environ, **realm.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield realm
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the KDC has stopped"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the KDC does not start")
