"""How a lab's page is read, and held against what its commands print."""

from pathlib import Path

import pytest

from demo.labs.command import main
from demo.labs.pages import (
    Command,
    File,
    Page,
    PageError,
    Prose,
    folder_of_pages,
    is_shown,
    page_names,
    parse,
)

RUNBOOKS = Path(__file__).parents[3] / "docs/runbooks"
PAGE = """# A lab

Some text.

```console eventually
$ first \\
>   --more
a <time> b
$ second
```

```python file=stock.py
print("x")
```

```json
{"shown": "only"}
```

The end.
"""


def test_a_page_is_read_in_its_order() -> None:
    assert parse(PAGE) == Page(
        "A lab",
        (
            Prose("Some text."),
            Command(6, "first \\\n  --more", "a <time> b", True, False, False),
            Command(9, "second", "", True, False, False),
            File("stock.py", 'print("x")\n', "python"),
            Prose('```json\n{"shown": "only"}\n```'),
            Prose("The end."),
        ),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with its title"),
        ("no title", "begins with its title"),
        ("# T\n```console\nls\n```\n", r"line 3: .* begins with `\$ `"),
        ("# T\n```console twice\n$ ls\n```\n", "a fence is not twice"),
    ],
)
def test_a_page_that_cannot_be_read_is_refused(text: str, why: str) -> None:
    with pytest.raises(PageError, match=why):
        parse(text)


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("", "", True),
        ("", "text\n", False),
        ("text", "", False),
        ("a", "a\n", True),
        ("a.c", "abc\n", False),
        ("took <n> ms", "took 12.5 ms\n", True),
        ("took <n> ms", "took 1 2 ms\n", False),
        ("took ... ms", "took 1 2 ms\n", True),
        ("a\n...\nz", "a\nb\nc\nz\n", True),
        ("a\n...\nz", "a\nz\n", True),
        ("a\n...", "b\n", False),
        ("...", "", True),
        ("a  ", "a\n", True),
        ("a b", "a\tb\n", True),
    ],
)
def test_what_is_printed_is_held_against_the_page(expected: str, printed: str, equal: bool) -> None:
    assert is_shown(expected, printed) == equal


@pytest.mark.parametrize("status", [0, 1])
def test_a_command_that_is_to_fail_must_fail(status: int) -> None:
    fails = Command(1, "x", "...", False, True, False)
    assert fails.is_met_by("why\n", status) == bool(status)
    works = Command(1, "x", "...", False, False, False)
    assert works.is_met_by("what\n", status) != bool(status)


@pytest.mark.parametrize("folder", [folder_of_pages(), RUNBOOKS])
def test_the_index_names_every_page(folder: Path) -> None:
    pages = {path.stem for path in folder.glob("*.md")} - {"index"}
    assert set(page_names(folder)) == pages


def test_a_lab_does_not_begin_where_it_would_delete_the_data_of_another_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    for name, stack in (("explain", "default"), ("mirror", "madrid")):
        data = tmp_path / "stacks" / stack / "data"
        data.mkdir(parents=True)
        assert main([name]) == 1
        assert f"millstream down --name {stack} --delete-data" in capsys.readouterr().out
        assert data.exists()


def test_each_lab_of_the_list_is_one_line_also_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MILLSTREAM_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "40")
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in page_names(folder_of_pages()):
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        title = parse((folder_of_pages() / f"{name}.md").read_text(encoding="utf-8")).title
        assert line.endswith(title)
