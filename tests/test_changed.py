"""The tests that a change reaches are picked, on a planted project."""

import pytest

from tests.lib.changed import chosen, told

PLANTED = {
    "broker/__init__.py": "",
    "broker/__main__.py": 'import_module(f"broker.cli.{name}")',
    "broker/cli/__init__.py": "",
    "broker/cli/topics.py": "from broker import model",
    "broker/model.py": "",
    "services/__init__.py": "",
    "services/rules.py": "from services.values import Money",
    "services/values.py": "",
    "services/app.py": "import services.rules",
    "millstream/__init__.py": "",
    "millstream/testing/__init__.py": "from millstream.testing.one import One\n"
    "from millstream.testing.two import Two",
    "millstream/testing/one.py": 'program_command("broker")',
    "millstream/testing/two.py": "",
    "millstream/testing/pytest_plugin.py": "from millstream.testing import One\n"
    "@pytest.fixture\ndef kafka_broker(): ...",
    "tests/conftest.py": "",
    "tests/services/conftest.py": "",
    "tests/services/test_rules.py": "from services.rules import decide",
    "tests/services/test_app.py": "def test_it():\n    import services.app",
    "tests/broker/test_model.py": "from broker.model import Topic",
    "tests/test_one.py": "from millstream.testing import One",
    "tests/test_two.py": "from millstream.testing import Two",
    "tests/test_fixture.py": "def test_it(kafka_broker: Any): ...",
    "tests/test_page.py": 'PAGE = "page.html"',
    "tests/test_tidy.py": "",
}


def picked(*changed: str) -> set[str]:
    return chosen(changed, PLANTED) - {"tests/test_tidy.py"}


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("services/values.py", {"tests/services/test_rules.py", "tests/services/test_app.py"}),
        ("services/app.py", {"tests/services/test_app.py"}),
        ("millstream/testing/two.py", {"tests/test_two.py"}),
        (
            "tests/services/conftest.py",
            {"tests/services/test_rules.py", "tests/services/test_app.py"},
        ),
        ("tests/test_two.py", {"tests/test_two.py"}),
    ],
)
def test_what_imports_a_module_is_picked(changed: str, tests: set[str]) -> None:
    assert picked(changed) == tests


def test_a_program_that_is_started_counts_as_imported() -> None:
    started = {"tests/test_one.py", "tests/test_fixture.py"}
    assert picked("broker/cli/topics.py") == started
    assert picked("broker/model.py") == started | {"tests/broker/test_model.py"}


def test_a_module_that_is_gone_reaches_what_still_imports_it() -> None:
    texts = {name: text for name, text in PLANTED.items() if name != "services/values.py"}
    assert "tests/services/test_rules.py" in chosen(["services/values.py"], texts)
    texts["tests/test_two.py"] = "from services import values"
    assert "tests/test_two.py" in chosen(["services/values.py"], texts)


def test_a_file_that_is_no_python_reaches_what_names_it_or_lies_beside_it() -> None:
    assert picked("services/page.html") == {"tests/test_page.py"}
    assert picked("services/look.css") == {
        "tests/services/test_rules.py",
        "tests/services/test_app.py",
    }
    assert picked("docs/new.md") == set()


def test_the_house_rules_are_always_run() -> None:
    assert chosen(["docs/new.md"], PLANTED) == {"tests/test_tidy.py"}


def test_it_is_said_what_is_left_out() -> None:
    tests = {"tests/a/test_x.py", "tests/a/test_y.py", "tests/b/test_z.py", "tests/c/test_c.py"}
    assert list(told({"tests/a/test_x.py", "tests/c/test_c.py"}, tests)) == [
        "2 of 4 test files can be reached by the change.",
        "  left out of tests/a: test_y.py",
        "  left out of tests/b: all 1",
    ]
