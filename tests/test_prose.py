"""House rules about prose: docstrings, comments, documents, and the help of settings."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_tidy import FOLDERS, ROOT, documents, name_of

PYTHON = (*FOLDERS, "tests")
HEADLESS = re.compile(
    r"(?:^|[.:?!]\s+)((?:Who|Whoever|Whom|Where nobody)\b[^.?!]*)(?:[.!]|$)"  # but not a question
)
HISTORY = re.compile(r"\b([Aa]ny ?more|[Aa]s before|[Nn]owadays|formerly|used to (?:be|have|do))\b")
QUESTION = re.compile(
    r"(?:(?:after|at|by|for|from|in|on|to|under|until|with) )?"
    r"(?:how|what|which|where|who|whose|why)\b",
    re.IGNORECASE,
)
"""The beginning of an indirect question, as in "After how much silence a worker is given up."."""
EMPTY = re.compile(r"See the (?:module|package|table of this module)\b")
"""The beginning of a docstring that leaves the reader to look elsewhere."""


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield docstrings, attribute strings and blocks of comments, each with its first line."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(ast.Constant(str(string))):
                yield node.lineno, " ".join(string.split())
    block: list[str] = []
    last_line = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] > last_line + 1:
                yield last_line - len(block) + 1, " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last_line = token.start[0]
    if block:
        yield last_line - len(block) + 1, " ".join(block)


def paragraphs_of(document: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, entries and cells of a document, without its code, with their lines."""
    is_code, begun, block = False, 0, []
    lines = document.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate([*lines, ""], 1):
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        entry = re.match(r"\s*(?:[-*]|\d+\.) |\||#+ ", line)
        if is_fence or is_code or not line.strip() or line.startswith("    ") or entry:
            yield from ((begun, cell.strip()) for cell in " ".join(block).split("|"))
            block = []
        if line.strip() and not (is_fence or is_code or line.startswith("    ")):
            begun = begun if block else number
            block.append(line[entry.end() :] if entry else line.strip())


def settings_help(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the documentation of the settings that a file declares with types of Connect's kind."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Tuple):
            parts = node.elts
        elif isinstance(node, ast.Call):
            parts = node.args
        if any(ast.unparse(part).startswith("Type.") for part in parts):
            texts = [part for part in parts if isinstance(part, ast.Constant)]
            yield from (
                (one.lineno, one.value)
                for one in texts[1:]
                if isinstance(one.value, str) and " " in one.value
            )


def options_help(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the help of command-line options, and of settings that are options too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.keyword(arg="help", value=ast.Constant(str(text))):
                yield node.value.lineno, text
            case ast.Dict(keys=[ast.Constant("help")], values=[ast.Constant(str(text))]):
                yield node.lineno, text


def broker_settings_help() -> Iterator[tuple[int, str]]:
    path = ROOT / "broker" / "config" / "setting_documentation.py"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = re.match(r"[a-z0-9]+(?:\.[a-z0-9]+)+ (.*)", line)
        if row is not None:
            yield number, row[1]


def riddles(text: str) -> list[str]:
    """Return sentences without a subject ("Who is silent is fenced"), and words about the past."""
    return [found.group(1)[:60] for rule in (HEADLESS, HISTORY) for found in rule.finditer(text)]


def is_sentence(text: str) -> bool:
    """Tell whether a setting's help stands by itself: no question, a capital, a full stop."""
    return (
        (text[0].isupper() or text[0] == "`")
        and text.endswith(".")
        and QUESTION.match(text) is None
    )


def files_with(text: str) -> list[Path]:
    """Return the files that have a text, to spare the time for others."""
    files = (path for folder in PYTHON for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in files if text in path.read_text(encoding="utf-8")]


def may_have_riddles(text: str) -> bool:
    """Tell whether a file's comments and docstrings can have a riddle; to read them takes long."""
    as_one_line = re.sub(r"[\s#]+", " ", text)
    return re.search(r"\b(?:Who|Whoever|Whom|Where nobody)\b", as_one_line) is not None or (
        HISTORY.search(as_one_line) is not None
    )


def said_in(texts: Iterator[tuple[int, str]], path: Path) -> list[str]:
    return [f"{name_of(path)}:{line}: {one}" for line, text in texts for one in riddles(text)]


@pytest.mark.parametrize("text", ["Whoever asks waits.", "A sentence. Who is silent is fenced."])
def test_a_sentence_without_a_subject_is_found(text: str) -> None:
    assert riddles(text)


@pytest.mark.parametrize("text", ["It answers. Who asks? A client.", "The user who asks waits."])
def test_a_sentence_with_a_subject_is_left_alone(text: str) -> None:
    assert not riddles(text)


@pytest.mark.parametrize("folder", PYTHON)
def test_prose_is_plain_english(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    found = [
        one
        for file in files
        if may_have_riddles(file.read_text(encoding="utf-8"))
        for one in said_in(prose_of(file), file)
    ]
    assert found == []


@pytest.mark.parametrize("said", ["who waits any\n    # more.", "all.\n    # Whoever asks waits."])
def test_a_riddle_over_two_lines_of_a_comment_is_found(said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"def one():\n    # Somebody {said}\n    ...\n")
    assert may_have_riddles(path.read_text())
    assert [one for _, text in prose_of(path) for one in riddles(text)]


@pytest.mark.parametrize(
    "text", ["- Whoever asks waits.", "| a | It is so no\nmore. Who asks waits |"]
)
def test_a_riddle_in_a_document_is_found(text: str, tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"# Title\n\n{text}\n")
    assert [one for _, said in paragraphs_of(document) for one in riddles(said)]


def test_code_in_a_document_is_no_prose(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("Text.\n\n    # Whoever asks waits.\n\n```\nWho asks waits.\n```\n")
    assert [said for _, said in paragraphs_of(document) if said] == ["Text."]


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_documents_are_plain_english(document: Path) -> None:
    assert said_in(paragraphs_of(document), document) == []


def test_help_is_plain_english() -> None:
    found = [one for file in files_with("help") for one in said_in(options_help(file), file)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("After how much silence a worker is given up.", False),
        ("How long a session key is used.", False),
        ("the topic of offsets.", False),
        ("The topic of offsets", False),
        ("A worker that is silent for this time is given up.", True),
        ("The cluster whose defaults apply: source or target.", True),
    ],
)
def test_a_sentence_is_told_from_a_question(text: str, is_one: bool) -> None:
    assert is_sentence(text) == is_one


def test_the_help_of_settings_is_read(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        'A = ("a.b", Type.INT, 1, "Where it goes.")\n'
        'B = ConfigDef().define("c", Type.LIST, "How it goes.", default="no documentation")\n'
    )
    found = settings_help(tmp_path / "settings.py")
    assert list(found) == [(1, "Where it goes."), (2, "How it goes.")]


def test_the_help_of_settings_is_sentences() -> None:
    """Kafka's own texts begin with "Whether", too; other indirect questions are riddles."""
    files = [path for path in files_with("Type.") if path.parts[len(ROOT.parts)] != "tests"]
    found = [(name_of(path), line, text) for path in files for line, text in settings_help(path)]
    found += [("broker settings", line, text) for line, text in broker_settings_help()]
    assert len(found) > 500
    assert [one for one in found if not is_sentence(one[2]) or riddles(one[2])] == []


def sent_elsewhere(path: Path) -> Iterator[int]:
    """Yield the lines of classes and functions whose docstring is somewhere else."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None and EMPTY.match(text):
                yield node.lineno


def test_a_docstring_that_says_nothing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text('class A:\n    """See the module. It has more."""\n')
    assert list(sent_elsewhere(path)) == [1]


def test_docstrings_say_something() -> None:
    found = [
        f"{name_of(path)}:{line}" for path in files_with("See the") for line in sent_elsewhere(path)
    ]
    assert found == []


def without_docstring(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_named and not node.name.startswith("_") and ast.get_docstring(node) is None:
            yield node.name


def test_a_function_without_a_docstring_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('def told():\n    """Say."""\n\n\ndef silent(): ...\n')
    assert list(without_docstring(tmp_path / "a.py")) == ["silent"]


def test_what_people_copy_says_what_it_does() -> None:
    files = sorted((ROOT / "services").rglob("*.py"))
    found = [f"{name_of(path)}: {name}" for path in files for name in without_docstring(path)]
    assert found == []
