"""The source and the sink that stand in connect/README.md, run as they stand there."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from millstream.testing import LocalBroker
from tests.lib.connect_worker import ConnectWorker, eventually

README = Path(__file__).parents[3] / "connect" / "README.md"


def written_in_readme(name: str) -> str:
    found = re.search(
        rf"<!-- (?:\w+: )?{re.escape(name)} -->\n```\w+\n(.*?)```", README.read_text(), re.DOTALL
    )
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", ["counting.py", "last_values.py"])
def test_they_have_about_forty_lines(name: str) -> None:
    assert len(written_in_readme(name).splitlines()) <= 50


@pytest.mark.slow
def test_they_do_what_they_say(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    for name in ("counting.py", "last_values.py"):
        (plugins / name).write_text(written_in_readme(name))
    database = tmp_path / "last.db"
    with LocalBroker() as broker:
        settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "offset.storage.file.filename": str(tmp_path / "offsets"),
            "plugin.path": str(plugins),
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        }
        with ConnectWorker(tmp_path, settings) as worker:
            for name in ("numbers.json", "last.json"):
                created = json.loads(written_in_readme(name))
                created["config"] |= {"file": str(database)} if name == "last.json" else {}
                assert worker.call("POST", "/connectors", created).status == 201
            eventually(lambda: count(database) == 500)
    with sqlite3.connect(database) as connection:
        found = connection.execute("SELECT value FROM last WHERE key = '7'").fetchone()
    connection.close()
    assert found == ("Struct{n=7,square=49}",)


def count(database: Path) -> int:
    connection = sqlite3.connect(database)
    try:
        (found,) = connection.execute("SELECT count(*) FROM last").fetchone()
        return int(found)
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()
