"""The clients of Kafka that a program may use, and how much it knows of the libraries.

Only Connect, and what runs in a user's own process, ask with librdkafka's admin client. How
aiokafka works inside is known to `common/kafka/consumer.py` and to the room around Faust alone.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_tidy import FOLDERS, ROOT

PRODUCT = [folder for folder in FOLDERS if folder not in ("tests", "bench")]
FAUST_ROOM = ROOT / "streams" / "around_faust"
LIBRARIES = ("aiokafka", "confluent_kafka", "faust")
PUBLIC = ("aiokafka", "aiokafka.abc", "aiokafka.errors", "aiokafka.structs")
MAX_INTERNAL_IMPORTS = 8
ADMIN_CLIENTS = ("aiokafka.admin", "confluent_kafka.admin")
TOPICS = ("NewPartitions", "NewTopic")
OF_OTHERS = ("_replace", "_jsc")
"""Attributes of named tuples, and of Spark's sessions."""
HAVE_ADMIN_CLIENTS = ("connect", "millstream")
STOCK_CLIENTS = ("python_calls.py", "stock_admins.py", "topic_creator.py")
"""Files in `tests/lib` that show what the library's own admin client sees."""


def sources(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files that name a library at all; to parse all others would take long."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if any(library in text for library in LIBRARIES):
                yield path.relative_to(ROOT), ast.parse(text)


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return every imported module, with a name of it or an empty one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", each.name) for each in node.names)


def asks_by_a_library(tree: ast.Module) -> bool:
    return any(
        module.startswith(ADMIN_CLIENTS)
        or name == "AIOKafkaAdminClient"
        or (module.startswith("confluent_kafka") and name in (*TOPICS, "admin"))
        for module, name in imports(tree)
    )


def private_attributes(tree: ast.Module) -> Iterator[str]:
    """Return the private attributes of other objects; librdkafka's error codes are in capitals."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        is_dunder, is_code = node.attr.startswith("__"), node.attr.isupper()
        if not (is_own or is_dunder or is_code or node.attr in OF_OTHERS):
            yield node.attr


def test_only_connect_and_users_have_an_admin_client_of_a_library() -> None:
    found = {path for path, tree in sources(*PRODUCT) if asks_by_a_library(tree)}
    assert {path.parts[0] for path in found} == set(HAVE_ADMIN_CLIENTS)


def test_tests_share_no_admin_client_of_a_library_but_as_stock_clients() -> None:
    found = {path.name for path, tree in sources("tests/lib") if asks_by_a_library(tree)}
    assert found == set(STOCK_CLIENTS)


def test_no_file_outside_the_room_around_faust_reads_private_attributes_of_a_client() -> None:
    found = {
        path: names
        for path, tree in sources(*PRODUCT)
        if FAUST_ROOM not in (ROOT / path).parents
        and any(module.startswith(LIBRARIES) for module, _ in imports(tree))
        and (names := sorted(private_attributes(tree)))
    }
    assert found == {}


def test_there_are_few_imports_of_the_inside_of_aiokafka() -> None:
    found = {
        (path, module)
        for path, tree in sources(*PRODUCT)
        for module, _ in imports(tree)
        if module.startswith("aiokafka") and module not in PUBLIC
    }
    assert len(found) <= MAX_INTERNAL_IMPORTS, sorted(found)
