"""A part of a log file, passed on instead of its bytes so that the server can use sendfile."""

from dataclasses import dataclass

from broker.log.storage import File


@dataclass(frozen=True, slots=True)
class FileRegion:
    """`length` bytes of `file` from `position`; the file stays open while this object lives."""

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        """Return the file descriptor to send from."""
        return self.file.fileno()

    def read(self) -> bytes:
        """Return the bytes, for a connection without sendfile (TLS) and for tests."""
        return self.file.read(self.position, self.length)
