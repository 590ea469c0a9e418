"""What the documents name is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SKIPPED = {".venv", ".git", "build", ".hypothesis", "node_modules"}
DOCUMENTS = sorted(
    path for path in ROOT.rglob("*.md") if not SKIPPED & set(path.relative_to(ROOT).parts)
)
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|toml|json|sh|yml|txt|css|proto|avsc))`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"^ {4}.*$", re.MULTILINE)
EXAMPLES = ("services/greetings/",)
"""What a reader is told to make."""


def named(document: Path) -> Iterator[str]:
    text = document.read_text(encoding="utf-8")
    yield from PATH.findall(text)
    yield from (link for link in LINK.findall(CODE.sub("", text)) if "://" not in link)


def exists(name: str, document: Path) -> bool:
    """Look from the root, from the document's folder, and from each folder above it."""
    folders = [ROOT, document.parent, *document.parent.parents]
    return any((folder / name).exists() for folder in folders if folder.is_relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    names = [name for name in named(document) if not name.startswith(EXAMPLES)]
    assert [name for name in names if not exists(name, document)] == []


def test_every_file_that_tests_share_is_in_the_index() -> None:
    index = (ROOT / "tests" / "lib" / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in (ROOT / "tests" / "lib").glob("*.py")}
    assert files == set(re.findall(r"`(\w+\.py)`", index))


def test_the_architecture_names_every_program() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)/`", table.partition("## ")[0]))
    there = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert there <= told | {"tests", "bench"}
