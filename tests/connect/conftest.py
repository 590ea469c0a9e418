"""Connectors that run in the process of a test use any file, as its worker would have said."""

import pytest

from connect.local_files import allow_directories


@pytest.fixture(autouse=True, scope="session")
def _all_files_are_allowed() -> None:
    allow_directories(["/"])
