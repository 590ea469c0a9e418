"""Plugins are found: ours, in folders, by every name they go by."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.connectors.file_stream import FileStreamSourceConnector
from connect.converters.json_converter import JsonConverter
from connect.plugins.catalogue import PluginKind, Plugins
from connect.plugins.scan import find_plugins
from millstream.connect import SourceConnector

SOURCE = """
from millstream.connect import SourceConnector, SourceTask

class {name}(SourceConnector):
    def task_class(self):
        return SourceTask
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "connect.connectors.file_stream.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
    ],
)
def test_a_connector_goes_by_four_names(name: str) -> None:
    assert find_plugins().connector(name) is FileStreamSourceConnector


def test_a_converter_is_one_for_headers_too() -> None:
    plugins = find_plugins()
    assert plugins.find("JsonConverter", PluginKind.CONVERTER) is JsonConverter
    assert plugins.find("Json", PluginKind.HEADER_CONVERTER) is JsonConverter
    with pytest.raises(LookupError):
        plugins.find("Json", PluginKind.TRANSFORMATION)


def test_a_name_of_two_classes_means_neither() -> None:
    first = type("Same", (SourceConnector,), {"__module__": "one"})
    second = type("Same", (SourceConnector,), {"__module__": "two"})
    plugins = Plugins([first, second])
    assert plugins.connector("one.Same") is first
    with pytest.raises(LookupError):
        plugins.connector("Same")


def test_modules_packages_and_folders_of_plugin_path_are_found(folder: Path) -> None:
    (folder / "lone_module.py").write_text(SOURCE.format(name="LoneSource"))
    (folder / "a_package").mkdir()
    (folder / "a_package" / "inner.py").write_text(SOURCE.format(name="InnerSource"))
    (folder / "a_package" / "__init__.py").write_text("from a_package.inner import InnerSource")
    (folder / "own").mkdir()
    (folder / "own" / "own_module.py").write_text(SOURCE.format(name="OwnSource"))
    plugins = find_plugins([str(folder)])
    for name in ("LoneSource", "InnerSource", "OwnSource"):
        assert plugins.connector(name).__name__ == name


def test_a_distribution_says_by_an_entry_point_what_it_has(folder: Path) -> None:
    (folder / "shop_plugins.py").write_text(SOURCE.format(name="ShopSource"))
    (folder / "shop_extra.py").write_text(SOURCE.format(name="NotMeant"))
    about = folder / "shop-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[millstream.connectors]\nshop = shop_plugins\n")
    plugins = find_plugins([str(folder)])
    assert plugins.connector("ShopSource").__name__ == "ShopSource"
    with pytest.raises(LookupError):
        plugins.connector("NotMeant")


def test_what_is_broken_is_left_out_and_the_rest_is_found(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "broken_plugin.py").write_text("import there_is_no_such_module")
    (folder / "whole_plugin.py").write_text(SOURCE.format(name="WholeSource"))
    plugins = find_plugins([str(folder), str(folder / "missing")])
    assert plugins.connector("WholeSource").__name__ == "WholeSource"
    assert "module=broken_plugin" in caplog.text
    assert "names no folder" in caplog.text
