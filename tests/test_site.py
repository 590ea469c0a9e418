"""The documentation builds as a site without a warning: no dead link, no page that nobody finds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-d", str(tmp_path / "d")]
    done = subprocess.run(
        [sys.executable, *command, ".", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "docs" / "index.html").is_file()
    assert (tmp_path / "site" / "searchindex.js").is_file()
