"""The store of files, a folder or a bucket, through pyarrow's file systems."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from connect.connectors.object_store.files import UNFINISHED
from connect.local_files import allowed_path
from millstream.connect.config.types import Password
from millstream.connect.errors import ConfigException


class Store:
    """Writes files atomically: no reader sees a part of a file. Raises OSError."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        url = urlsplit(parsed["store.url"])
        self._is_folder = url.scheme == "file"
        if self._is_folder:
            self._files: Any = fs.LocalFileSystem()
            self._root = allowed_path("store.url", unquote(url.path))
            return
        key, secret = parsed["aws.access.key.id"], parsed["aws.secret.access.key"]
        endpoint = {} if not url.netloc else {"endpoint_override": url.netloc, "scheme": url.scheme}
        self._files = fs.S3FileSystem(
            access_key=_told(key),
            secret_key=_told(secret),
            region=parsed["s3.region"],
            connect_timeout=5,
            request_timeout=30,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=2),
            **endpoint,
        )
        self._root = parsed["s3.bucket.name"]

    def write(self, path: str, body: bytes) -> None:
        """Write a file; it replaces one with the same name."""
        whole = f"{self._root}/{path}"
        if not self._is_folder:
            with self._files.open_output_stream(whole) as stream:
                stream.write(body)
            return
        self._require_inside(whole)
        self._files.create_dir(os.path.dirname(whole), recursive=True)
        unfinished = f"{whole}{UNFINISHED}"
        with open(unfinished, "wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, whole)

    def _require_inside(self, path: str) -> None:
        """Raise ConfigException if links or `..` lead out of the folder."""
        real = allowed_path("store.url", path)
        if os.path.commonpath((real, self._root)) != self._root:
            raise ConfigException.of_value("store.url", self._root, f"{path} is outside of it")

    def remove(self, path: str) -> None:
        self._files.delete_file(f"{self._root}/{path}")

    def paths(self, folder: str) -> list[str]:
        """Return the paths of the files below a folder, sorted."""
        selector = fs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        found = self._files.get_file_info(selector)
        return sorted(
            one.path.removeprefix(f"{self._root}/") for one in found if one.type == fs.FileType.File
        )


def _told(secret: Password | None) -> str | None:
    return None if secret is None else secret.value
