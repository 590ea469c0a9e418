"""Prometheus and its promtool, of Debian's package `prometheus`, if they are on the machine.

`apt-get download prometheus && dpkg -x prometheus_*.deb FOLDER` is enough, with FOLDER/usr/bin on
the PATH.
"""

import shutil

import pytest

_WHY = "needs Debian's package prometheus on the PATH: apt-get download prometheus; dpkg -x"


def program(name: str) -> str:
    """Return the path of a program of the package; skip the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} {_WHY}")
    return found
