"""Values of configurations from files, directories and the environment."""

import os
from pathlib import Path

import pytest

from connect.config_providers.providers import (
    MAX_FILE_BYTES,
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
)
from connect.config_providers.variables import Variables
from millstream.connect.errors import ConfigException
from millstream.connect.plugins import ConfigProvider


def configured(provider: ConfigProvider, **settings: str) -> ConfigProvider:
    provider.configure({name.replace("_", "."): value for name, value in settings.items()})
    return provider


def test_variables_are_replaced_and_what_nobody_knows_stays(tmp_path: Path) -> None:
    secrets = tmp_path / "db.properties"
    secrets.write_text("user=me\npassword = s3cret\n")
    (tmp_path / "token").write_text("abc")
    providers = {
        "file": configured(FileConfigProvider()),
        "dir": configured(DirectoryConfigProvider()),
        "env": configured(EnvVarConfigProvider({"HOST": "db1"})),
    }

    written = {
        "url": "pg://${file:" + f"{secrets}" + ":user}@${env:HOST}/x",
        "password": f"${{file:{secrets}:password}}",
        "token": f"${{dir:{tmp_path}:token}}",
        "odd": "${file:}${vault:a:b}${env:NONE}$${x}",
        "gone": f"${{file:{secrets}:none}}",
        "null": None,
    }
    configs = Variables.of(written, providers=providers).filled(written)

    assert configs == {
        "url": "pg://me@db1/x",
        "password": "s3cret",
        "token": "abc",
        "odd": "${file:}${vault:a:b}${env:NONE}$${x}",
        "gone": f"${{file:{secrets}:none}}",
        "null": None,
    }


def test_a_malformed_file_is_refused(tmp_path: Path) -> None:
    secrets = tmp_path / "db.properties"
    secrets.write_text("password=s3cret\\u00zz")
    with pytest.raises(ConfigException, match=r"malformed \\u escape") as refused:
        configured(FileConfigProvider()).get(str(secrets))
    assert "s3cret" not in str(refused.value)


def test_only_allowed_paths_are_read(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "a.properties").write_text("a=1")
    provider = configured(FileConfigProvider(), allowed_paths=str(allowed))
    directory = configured(DirectoryConfigProvider(), allowed_paths=str(allowed))

    assert provider.get(f"{allowed}/a.properties") == {"a": "1"}
    assert provider.get(f"{allowed}/../other/a.properties") == {}
    assert provider.get(f"{allowed}/a.properties\0") == {}
    assert directory.get(str(other)) == {}
    assert directory.get(str(allowed), ["a.properties", "none"]) == {"a.properties": "a=1"}
    assert directory.get(f"{allowed}/a.properties") == {}
    for wrong in ("relative", f"{tmp_path}/none"):
        with pytest.raises(ConfigException, match=r"is not absolute|does not exist"):
            configured(FileConfigProvider(), allowed_paths=wrong)


def test_what_is_not_a_file_or_too_large_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * (MAX_FILE_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\xff")
    provider = configured(FileConfigProvider())

    for name in ("pipe", "large", "binary", "none", "."):
        with pytest.raises(ConfigException):
            provider.get(str(tmp_path / name))
    with pytest.raises(ConfigException):
        provider.get("/dev/zero")
    assert provider.get("") == {}
    with pytest.raises(ConfigException, match="More than"):
        configured(DirectoryConfigProvider()).get(str(tmp_path), ["large"])


def test_the_environment_can_be_limited_by_name() -> None:
    environment = {"DB_HOST": "a", "DB_PASSWORD": "b", "HOME": "c"}
    provider = configured(EnvVarConfigProvider(environment), allowlist_pattern="DB_.*")

    assert provider.get("") == {"DB_HOST": "a", "DB_PASSWORD": "b"}
    assert provider.get("", ["DB_HOST", "HOME"]) == {"DB_HOST": "a"}
    with pytest.raises(ConfigException, match="Path is not supported"):
        provider.get("somewhere")
    with pytest.raises(ConfigException, match="allowlist"):
        configured(EnvVarConfigProvider(environment), allowlist_pattern="(")
