"""What documents and docstrings name is there, and their lists are complete."""

import ast
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_prose import prose_of
from tests.test_tidy import FOLDERS, ROOT, documents, name_of

SKIPPED = {".venv", ".git", "build", ".hypothesis", "node_modules", "__pycache__"}
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"^ {4}.*$", re.MULTILINE)
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w-][\w.-]*(?:/[\w.-]+)*/?")
SUFFIX = re.compile(r"\.(?:py|md|toml|json|sh|yml|yaml|txt|css|proto|avsc|tsv|hex|c)$")
ALONE = (".py", ".md", ".toml", ".sh")
DOTTED = re.compile(r"[a-z_]+(?:\.\w+)+")
MADE_BY_READERS = (
    *("services/greetings/", "streams/largest_order.py"),
    *("build/", "_task.py", "millstream/programs"),
)
"""What a reader is told to make, what a run makes, the end of many names, and a wheel's folder."""
NOT_MODULES = re.compile(
    r"broker\.(?:heartbeat|session|rack|id)\b.*|connect\.(?:meta|name|type|index|protocol)\b.*"
    r"|streams\.(?:assignment|heartbeat|initial|num|session)\b.*"
    r"|schemas\.(?:cache|enable)\b.*|millstream\.(?:authorizer|connectors)"
)
"""Settings, and the attributes of records, that begin like a program's name; an entry point."""


def paths() -> set[str]:
    """Return every file and folder by each end of its path: `c.py`, `b/c.py`, `a/b/c.py`."""
    found = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = set(folders) - SKIPPED
        for name in (*folders, *files):
            parts = (Path(folder) / name).relative_to(ROOT).parts
            found |= {"/".join(parts[at:]) for at in range(len(parts))}
    return found


THERE = paths()
TOP = {path.name for path in ROOT.iterdir() if path.is_dir()}


@cache
def is_defined(name: str) -> bool:
    """Tell whether a dotted name is a module, or is in the text of the module it begins with."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:cut])
        files = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()]
        if files:
            text = files[0].read_text(encoding="utf-8")
            return cut == len(parts) or re.search(rf"\b{parts[cut]}\b", text) is not None
        if base.is_dir() and cut == len(parts):
            return True
    return False


@cache
def is_near(name: str, folder: str) -> bool:
    return "/" in name or (ROOT / name).exists() or any((ROOT / folder).rglob(name))


def missing(text: str, folder: str = "") -> Iterator[str]:
    """Yield the names in backticks that look like a path, or like a module, and are none.

    The name of a file alone is looked for in `folder`, a program's.
    """
    for name in IN_BACKTICKS.findall(text):
        if name.startswith(MADE_BY_READERS):
            continue
        first = name.partition("/")[0]
        is_path = first in TOP or SUFFIX.search(name) if "/" in name else name.endswith(ALONE)
        is_module = DOTTED.fullmatch(name) and name.partition(".")[0] in {*FOLDERS, "tests"}
        if is_path and PATH.fullmatch(name):
            if name.rstrip("/") not in THERE or not is_near(name, folder):
                yield name
        elif is_module and not is_defined(name) and not NOT_MODULES.fullmatch(name):
            yield name


@pytest.mark.parametrize(
    "name",
    ["broker/log/gone.py", "gone.py", "docs/gone/", "broker.log.gone", "broker.log.read.gone_name"],
)
def test_a_name_of_nothing_is_found(name: str) -> None:
    assert list(missing(f"See `{name}`.")) == [name]


def test_a_name_of_a_file_of_another_program_is_found() -> None:
    assert list(missing("See `partition_log.py`.", "mirror")) == ["partition_log.py"]
    assert list(missing("See `partition_log.py`.", "broker")) == []


@pytest.mark.parametrize(
    "name",
    ["broker/log/read.py", "read.py", "docs/", "broker.log", "a/b", "acks=all", "schemas.enable"],
)
def test_a_name_of_something_is_left_alone(name: str) -> None:
    assert list(missing(f"See `{name}`.")) == []


def links(document: Path) -> Iterator[str]:
    text = CODE.sub("", document.read_text(encoding="utf-8"))
    yield from (link for link in LINK.findall(text) if "://" not in link)


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    folder = document.relative_to(ROOT).parts[0]
    text = document.read_text(encoding="utf-8")
    assert list(missing(text, folder if folder in FOLDERS else "")) == []
    assert [link for link in links(document) if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_every_file_that_a_docstring_names_exists(folder: str) -> None:
    assert [
        f"{name_of(path)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__) and "`" in path.read_text(encoding="utf-8")
        for line, text in prose_of(path)
        for name in missing(text, folder if folder != "tests" else "")
    ] == []


def modules_of(package: Path) -> set[str]:
    """Return the names of a package's modules and packages."""
    files = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in package.glob("*/__init__.py")}


def modules_named(docstring: str) -> set[str]:
    """Return what is named in backticks, and at the beginning of the rows of a table."""
    found = set()
    for name in IN_BACKTICKS.findall(docstring):
        short = name.rstrip("/").removesuffix(".py")
        found |= {short, *short.split("/")[:1], *short.split(".")}
    for row in re.findall(r"^ {2,}(\w+(?:, \w+)*)(?: {2,}| ?$| )", docstring, re.MULTILINE):
        found |= set(row.split(", "))
    return found


def not_listed(modules: set[str], docstring: str) -> set[str]:
    """Return what a list lacks: a docstring that names more than half of the files is a list."""
    named = modules & modules_named(docstring)
    return modules - named if len(named) > max(2, len(modules) // 2) else set()


def test_an_incomplete_list_is_found() -> None:
    modules = {"plan", "run", "stop", "page"}
    listed = "A program.\n\n    plan    what is done\n    run     does it\n    stop    ends it\n"
    assert not_listed(modules, listed) == {"page"}
    assert not_listed(modules, listed + "`page.py` shows it.") == set()
    assert not_listed(modules, "A program. Start with `plan.py`.") == set()


def packages() -> Iterable[Path]:
    return (path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py"))


def test_lists_of_files_in_the_docstrings_of_packages_are_complete() -> None:
    found = {}
    for package in sorted(packages()):
        text = (package / "__init__.py").read_text(encoding="utf-8")
        lacking = not_listed(modules_of(package), ast.get_docstring(ast.parse(text)) or "")
        if lacking:
            found[name_of(package)] = sorted(lacking)
    assert found == {}


def gone(package: Path, docstring: str) -> set[str]:
    """Return the names with a `_` in a package's docstring that nothing in the package has."""
    names = set(re.findall(r"`([a-z0-9]+(?:_[a-z0-9]+)+)(?:\.py|/)?`", docstring))
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    words = {word for text in texts for word in re.findall(r"\w+", text.replace(docstring, ""))}
    return names - words - {path.stem for path in package.rglob("*")}


def test_a_module_that_is_gone_is_found(tmp_path: Path) -> None:
    (tmp_path / "read_all.py").write_text("def read_one() -> None: ...\n")
    assert gone(tmp_path, "`read_all` has `read_one`, `read_none` nothing.") == {"read_none"}


def test_docstrings_of_packages_name_nothing_that_is_gone() -> None:
    found = {}
    for package in sorted(packages()):
        text = (package / "__init__.py").read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
        if names := gone(package, docstring):
            found[name_of(package)] = names
    assert found == {}


def test_every_file_that_tests_share_says_in_its_first_line_what_it_is() -> None:
    files = list((ROOT / "tests" / "lib").glob("*.py"))
    firsts = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in files}
    assert len(files) > 10
    assert [name for name, first in firsts.items() if not re.match(r'"""\S.{20,}', first)] == []


def test_the_architecture_names_every_program() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)/`", table.partition("## ")[0]))
    assert set(FOLDERS) <= told


@pytest.mark.parametrize(
    ("contract", "left_out"),
    [("The broker's layers", ["__main__"]), ("The rooms of the broker's shell", [])],
)
def test_the_architecture_has_the_chains_of_imports(contract: str, left_out: list[str]) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [
        one["layers"]
        for one in contracts["tool"]["importlinter"]["contracts"]
        if one["name"] == contract
    ]
    chain = " → ".join(layer for layer in layers if layer not in left_out)
    assert f"`{chain}`" in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


CHAPTERS = sorted(
    path for path in (ROOT / "docs/architecture").glob("*.md") if path.stem != "index"
)
CHAPTER_WORDS = 600
CONSOLE = re.compile(r"^```console.*\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_a_chapter_is_short_and_has_a_picture_and_names_of_code(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert len(text.split()) <= CHAPTER_WORDS
    assert text.count("```text") == 1
    assert sum(is_defined(name) for name in IN_BACKTICKS.findall(text) if DOTTED.fullmatch(name))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_what_a_chapter_lets_its_reader_try_is_run_in_the_lab_that_it_names(chapter: Path) -> None:
    trying = chapter.read_text(encoding="utf-8").partition("## Try it")[2]
    (lab,) = [link for link in LINK.findall(trying) if link.startswith("../labs/")]
    run = (chapter.parent / lab).read_text(encoding="utf-8").splitlines()
    tried = [line for fence in CONSOLE.findall(trying) for line in fence.splitlines()]
    assert tried
    assert [line for line in tried if line not in run] == []
