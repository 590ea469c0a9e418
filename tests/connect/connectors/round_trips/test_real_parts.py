"""The walk of real_parts.py, once, short: every part is killed."""

import pytest

pytest.importorskip("pyarrow")

from tests.connect.connectors.round_trips.real_parts import walk
from tests.lib.elasticsearch_server import Elasticsearch


@pytest.mark.e2e
# Connections of servers that are killed are left to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_table_index_copy_and_files_agree_after_each_part_was_killed(
    elasticsearch: Elasticsearch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = walk(elasticsearch, 6, ["worker", "Elasticsearch", "PostgreSQL", "broker"], 1, print)
    assert result["different"] == {"index": [], "copy": [], "files": []}, (
        capsys.readouterr().out,
        result["log"],
    )
    # What is twice in the files is twice in the topic.
    assert (result["lost"], result["added"]) == (0, 0), capsys.readouterr().out
    assert result["rows"] > 50
