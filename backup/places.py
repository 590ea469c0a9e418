"""Where the files of a backup are: a folder of this machine, or a bucket of an object store.

A bucket is given as `s3://BUCKET/PATH`. The keys are those of every client of S3: the variables
`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the files of the AWS tools. `AWS_ENDPOINT_URL`
names another store with this API.
"""

import os
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast
from urllib.parse import urlsplit

OBJECT_STORE: Final = "s3"
ENDPOINT_VARIABLE: Final = "AWS_ENDPOINT_URL"
_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 5, 60, 5
_BUFFER_BYTES: Final = 1 << 20


class PlaceError(Exception):
    """A place cannot be used; the text says why."""


class Place(Protocol):
    """Files by their names, which may have folders in front. Methods raise OSError."""

    def is_empty(self) -> bool:
        """Tell whether there is no file."""

    def create(self, name: str) -> IO[bytes]:
        """Return a new file, to be written and then given to `finish`."""

    def finish(self, file: IO[bytes]) -> None:
        """Close a new file; it stays after a crash."""

    def open(self, name: str) -> IO[bytes]:
        """Return a file, to be read."""

    def write_whole(self, name: str, data: bytes) -> None:
        """Write a file of which no reader ever sees a part."""


class Folder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def is_empty(self) -> bool:
        """Tell whether there is no file; create the folder."""
        self._path.mkdir(parents=True, exist_ok=True)
        return not any(self._path.iterdir())

    def create(self, name: str) -> IO[bytes]:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    def finish(self, file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def open(self, name: str) -> IO[bytes]:
        return (self._path / name).open("rb")

    def write_whole(self, name: str, data: bytes) -> None:
        unfinished = self._path / f"{name}.new"
        with unfinished.open("wb") as file:
            file.write(data)
            self.finish(file)
        unfinished.replace(self._path / name)


class Bucket:
    """A path in a bucket. No reader sees an object before all of it is written."""

    def __init__(self, url: str) -> None:
        """Take the URL apart; raise PlaceError."""
        parts = urlsplit(url)
        if not parts.netloc or not parts.path.strip("/") or "@" in url or "?" in url:
            raise PlaceError(f"{url}: a path in a bucket is s3://BUCKET/PATH")
        try:
            from pyarrow import fs
        except ImportError:
            raise PlaceError(f"{url} needs: pip install 'millstream[object-store]'") from None
        self._url = url.rstrip("/")
        self._root = f"{parts.netloc}{parts.path}".rstrip("/")
        store = urlsplit(os.environ.get(ENDPOINT_VARIABLE, ""))
        self._files: Any = fs.S3FileSystem(
            endpoint_override=store.netloc or None,
            scheme=store.scheme or None,
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_REQUEST_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )

    def __str__(self) -> str:
        return self._url

    def is_empty(self) -> bool:
        from pyarrow import fs

        everything = fs.FileSelector(self._root, recursive=True, allow_not_found=True)
        found = self._files.get_file_info(everything)
        return all(each.type != fs.FileType.File for each in found)

    def create(self, name: str) -> IO[bytes]:
        return cast(IO[bytes], self._files.open_output_stream(f"{self._root}/{name}"))

    def finish(self, file: IO[bytes]) -> None:
        file.close()

    def open(self, name: str) -> IO[bytes]:
        stream = self._files.open_input_stream(f"{self._root}/{name}")
        # Else every batch's header would be a request of its own.
        return BufferedReader(stream, _BUFFER_BYTES)

    def write_whole(self, name: str, data: bytes) -> None:
        with self.create(name) as file:
            file.write(data)


def place_at(text: str) -> Place:
    """Return the folder or the bucket of that name; raise PlaceError."""
    scheme, separator, _ = text.partition("://")
    if not separator:
        return Folder(Path(text))
    if scheme != OBJECT_STORE:
        raise PlaceError(f"{text}: a backup is in a folder, or at s3://BUCKET/PATH")
    return Bucket(text)
