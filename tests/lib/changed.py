"""The tests that a change can reach: `make test-changed BASE=main`, with two processes at most.

The change is what differs from the last common commit with BASE: commits, uncommitted changes and
new files. A test file is reached if it imports a changed module, through any number of others. The
name of a module as a text counts too, since programs are started as processes: `"services.fraud"`,
`f"broker.cli.{tool}"`, `program_command("broker")`. A fixture of the pytest plugin counts as an
import of the plugin, and a `conftest.py` as one by each test below it. Of a package that passes
names on (`from millstream.testing import LocalBroker`) the name counts, and not all of the package.

A file that is no Python reaches the tests that `OTHER_FILES` names, those that have its name in
their text or in what they import, and otherwise those of the modules of its folder. What is not
seen: modules that are found in another way (entry points, a name put together from several parts).
`make test` stays the last word.
"""

import argparse
import ast
import fnmatch
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE_RULES = (
    "tests/test_docs.py",
    "tests/test_import_contracts.py",
    "tests/test_prose.py",
    "tests/test_tidy.py",
)
"""These read every file, so they are always run."""
EVERYTHING = "tests/*"
OTHER_FILES = {
    "README.md": ["tests/interop/programs/test_documented_commands.py"],
    "docs/cluster.md": ["tests/interop/programs/test_documented_commands.py"],
    "docs/labs/*.md": ["tests/demo/labs/test_labs.py"],
    "docs/runbooks/*.md": ["tests/demo/labs/test_labs.py"],
    "*.md": [],
    ".ci/*": [],
    ".gitignore": [],
    "Makefile": [],
    "docs/*.png": [],
    "pyproject.toml": ["tests/conftest.py", "tests/interop/programs/test_installed.py"],
    "requirements/*": ["tests/interop/programs/test_installed.py", "tests/deploy/*"],
    "Dockerfile": ["tests/deploy/*"],
    ".dockerignore": ["tests/deploy/*"],
    "docker-compose.yml": ["tests/deploy/*"],
    "deploy/*": ["tests/deploy/*"],
    "tests/conftest.py": [EVERYTHING],
}
"""The first pattern that fits a file gives its tests, beside those that have its name."""
PLUGIN = "millstream.testing.pytest_plugin"


def module_of(file: str) -> str:
    """Return the name under which a file is imported; a package's is that of its `__init__`."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Imports:
    """What each file imports or names, by module. Files are paths from the root, with slashes."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.file_of = {module_of(file): file for file in texts}
        self._texts = {module_of(file): text for file, text in texts.items()}
        self._trees = {module: ast.parse(text) for module, text in self._texts.items()}
        self._passed_on = {
            module: dict(self._names_passed_on(module))
            for module, file in self.file_of.items()
            if file.endswith("__init__.py")
        }
        self._fixtures = re.findall(r"^def (\w+)\(", self._texts.get(PLUGIN, ""), re.MULTILINE)
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        for module in self._trees:
            for imported in self._imports(module):
                self.importers[imported].add(module)

    def reached_by(self, modules: Iterable[str]) -> set[str]:
        """Return the modules and all that import them, however far away."""
        reached: set[str] = set()
        waiting = set(modules)
        while waiting:
            module = waiting.pop()
            reached.add(module)
            waiting |= self.importers[module] - reached
        return reached

    def _names_passed_on(self, module: str) -> Iterator[tuple[str, str]]:
        for node in self._trees[module].body:
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from ((one.asname or one.name, node.module) for one in node.names)

    def _imports(self, module: str) -> Iterator[str]:
        file = self.file_of[module]
        text = self._texts[module]
        is_starting = "program_command" in text or '"-m"' in text
        if file.startswith("tests/"):
            yield from self._given_by_pytest(module)
        for node in ast.walk(self._trees[module]):
            match node:
                case ast.Import(names):
                    yield from (one.name for one in names)
                case ast.ImportFrom(module=str(source), names=names):
                    yield from (self._source_of(source, one.name) for one in names)
                case ast.JoinedStr([ast.Constant(str(begin)), *_]) if begin.endswith("."):
                    yield from (one for one in self.file_of if one.startswith(begin))
                case ast.Constant(str(named)) if "." in named or is_starting:
                    yield from (one for one in (named, f"{named}.__main__") if one in self.file_of)

    def _source_of(self, source: str, name: str) -> str:
        """Return the module of a name: `source`, one in it, or one whose names it passes on."""
        if f"{source}.{name}" in self.file_of:
            return f"{source}.{name}"
        while name in self._passed_on.get(source, {}):
            source = self._passed_on[source][name]
        return source

    def _given_by_pytest(self, module: str) -> Iterator[str]:
        parts = module.split(".")
        yield from (".".join([*parts[:at], "conftest"]) for at in range(1, len(parts)))
        if any(re.search(rf"\b{name}: ", self._texts[module]) for name in self._fixtures):
            yield PLUGIN


def is_test(file: str) -> bool:
    """Tell whether pytest collects a file."""
    return file.startswith("tests/") and Path(file).name.startswith("test_")


def chosen(changed: Iterable[str], texts: Mapping[str, str]) -> set[str]:
    """Return the test files that a change of files can reach.

    `changed` has paths from the root, also of files that are gone; `texts` is every Python file.
    """
    imports = Imports(texts)
    tests = {file for file in texts if is_test(file)}
    modules: set[str] = set()
    found: set[str] = set()
    for file in changed:
        if file.endswith(".py"):
            modules.add(module_of(file))
            if file not in texts:  # `from package import gone` may be left.
                modules.add(module_of(str(Path(file).parent / "__init__.py")))
        patterns = next((to for of, to in OTHER_FILES.items() if fnmatch.fnmatch(file, of)), None)
        found |= {test for one in patterns or [] for test in fnmatch.filter(tests, one)}
        if file.endswith(".py"):
            continue
        name = re.compile(rf"[\"'/]{re.escape(Path(file).name)}[\"']")
        naming = {module_of(one) for one, text in texts.items() if name.search(text)}
        if patterns is None and not naming:
            naming = {module_of(one) for one in texts if Path(one).parent == Path(file).parent}
        modules |= naming if patterns is None else {one for one in naming if "test_" in one}
    found |= {imports.file_of[one] for one in imports.reached_by(modules) if one in imports.file_of}
    return (found & tests) | (set(HOUSE_RULES) & tests)


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints."""
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def changed_since(base: str) -> list[str]:
    """Return what differs from the last common commit with `base`, new and deleted files too."""
    (common,) = git("merge-base", base, "HEAD")
    changed = git("diff", "--name-only", "--no-renames", common)
    return sorted({*changed, *git("ls-files", "-o", "--exclude-standard")})


def told(picked: set[str], tests: set[str]) -> Iterator[str]:
    """Yield lines about the tests of each folder: all of them, none, or which are left out."""
    yield f"{len(picked)} of {len(tests)} test files can be reached by the change."
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for test in tests:
        folders[str(Path(test).parent)].add(test)
    for folder, files in sorted(folders.items()):
        left_out = sorted(Path(file).name for file in files - picked)
        if left_out:
            what = f"all {len(files)}" if len(left_out) == len(files) else ", ".join(left_out)
            yield f"  left out of {folder}: {what}"


def main(arguments: list[str]) -> int:
    """Say which tests are left out, and run the others (or print them, with --list)."""
    parser = argparse.ArgumentParser(prog="python -m tests.lib.changed", description=__doc__)
    parser.add_argument("--base", default="main", help="a branch or a commit")
    parser.add_argument("--list", action="store_true", help="only print the tests")
    parser.add_argument("--workers", default="2", help="processes that run tests")
    options = parser.parse_args(arguments)
    files = git("ls-files", "-co", "--exclude-standard", "*.py")
    texts = {file: (ROOT / file).read_text("utf-8") for file in files if (ROOT / file).exists()}
    changed = changed_since(options.base)
    picked = chosen(changed, texts) if changed else set()
    if options.list:
        print("\n".join(sorted(picked)))
        return 0
    print("\n".join(told(picked, {file for file in texts if is_test(file)})), flush=True)
    if not picked:
        return 0
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", options.workers, "-m", "", "-rs"]
    return subprocess.run([*pytest, *sorted(picked)], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
