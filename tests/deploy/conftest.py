"""The image and the daemon, once for all tests of containers."""

from collections.abc import Iterator

import pytest

from tests.lib.docker import NoDockerError, build_settings, running_docker


@pytest.fixture(scope="session")
def docker() -> Iterator[dict[str, str]]:
    """Docker at work; the variables with which the compose file builds. Skips, saying why not."""
    try:
        with running_docker():
            yield build_settings()
    except NoDockerError as error:
        pytest.skip(str(error))
