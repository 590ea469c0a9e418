"""Compile `.proto` files with Google's compiler, and read the descriptors that clients send.

The compiler (package `grpcio-tools`) reads and writes files, and prints its messages to the
process's stderr. Each compilation has its own folder, so that the compiler finds only the given
files. A schema may import files of `google/` and `confluent/` without a reference.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

MAIN: Final = "schema_to_register.proto"
_PLACE: Final = re.compile(r"^\S*?schema_to_register\.proto:(?:(\d+):(\d+):)?\s*")
_KNOWN_IMPORT: Final = re.compile(r"""["'](google/(?:type|api|rpc)/[a-z_]+\.proto)["']""")
_KNOWN_NAME_LIMIT: Final = 100
_WARNING: Final = re.compile(r": warning: |^[IW]\d{4} ")
_SHOWN_ERRORS: Final = 10
_OWN_FILES: Final = Path(__file__).with_name("protos")


def compiled(text: str, imports: Sequence[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Compile a file; return the files that it imports, then the file itself.

    Raise ValueError for an invalid file and for an import that does not exist.
    """
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory(prefix="registry-proto-") as folder:
        work = Path(folder)
        (work / "in").mkdir()
        (work / "in" / MAIN).write_bytes(text.encode())
        given = FileDescriptorSet(file=_closed([*_known_imports(text), *imports]))
        (work / "imports").write_bytes(given.SerializeToString())
        arguments = [
            "protoc",
            f"--proto_path={work / 'in'}",
            f"--proto_path={files('grpc_tools').joinpath('_proto')}",
            f"--proto_path={_OWN_FILES}",
            f"--descriptor_set_in={work / 'imports'}",
            f"--descriptor_set_out={work / 'out'}",
            "--include_imports",
            MAIN,
        ]
        with _Stderr(work / "errors") as errors:
            status = protoc.main(arguments)
        if status != 0:
            raise ValueError(_told(errors.text, folder))
        found = FileDescriptorSet.FromString((work / "out").read_bytes()).file
    return list(found)


def _known_imports(text: str) -> list[FileDescriptorProto]:
    """Return the files of package `googleapis-common-protos` that a text may import."""
    names = sorted(set(_KNOWN_IMPORT.findall(text)))
    return [file for name in names for file in _generated(name)]


def is_importable(name: str) -> bool:
    """Return whether the compiler can find a file with this name: it must be a relative path."""
    parts = name.split("/")
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & set(parts)


def _closed(imports: Iterable[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Add Google's files that these import, because the compiler needs the complete set."""
    found: dict[str, FileDescriptorProto] = {}
    for file in imports:
        for name in file.dependency:
            if name not in found and len(name) <= _KNOWN_NAME_LIMIT:
                found |= {each.name: each for each in _known(name)}
        found[file.name] = file
    return list(found.values())


def pool_of(imports: Sequence[FileDescriptorProto]) -> DescriptorPool:
    """Return a pool with files and their imports; each file must come after its imports.

    Raise TypeError for an invalid descriptor.
    """
    pool = DescriptorPool()
    for file in _closed(imports):
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@lru_cache(maxsize=64)
def _known(name: str) -> tuple[FileDescriptorProto, ...]:
    """Return a file that needs no reference, after its imports; empty for an unknown name."""
    if not name.startswith(("google/", "confluent/")) or not is_importable(name):
        return ()
    roots = (Path(str(files("grpc_tools").joinpath("_proto"))), _OWN_FILES)
    path = next((root / name for root in roots if (root / name).is_file()), None)
    if path is not None:
        *imported, main = compiled(path.read_text(), ())
        main.name = name
        return (*imported, main)
    return _generated(name)


def _generated(name: str) -> tuple[FileDescriptorProto, ...]:
    """Return the descriptor of a file of package `googleapis-common-protos`."""
    module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
    if not re.fullmatch(r"google\.(type|api|rpc)\.[a-z_]+_pb2", module):
        return ()
    try:
        descriptor = import_module(module).DESCRIPTOR
    except ImportError:
        return ()
    file = FileDescriptorProto.FromString(descriptor.serialized_pb)
    imported = {each.name: each for name in file.dependency for each in _known(name)}
    return (*imported.values(), file)


class _Stderr:
    """Captures everything that is written to the process's stderr inside of its block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.text = ""

    def __enter__(self) -> "_Stderr":
        sys.stderr.flush()
        self._saved = os.dup(2)
        with self._path.open("wb") as kept:
            os.dup2(kept.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self._saved, 2)
        os.close(self._saved)
        self.text = self._path.read_bytes().decode(errors="replace")


def _told(errors: str, folder: str) -> str:
    """Return the compiler's messages without the names of the temporary files."""
    lines = [
        _PLACE.sub(lambda place: f"line {place[1]}:{place[2]} " if place[1] else "", line)
        for line in errors.splitlines()
        if line.strip() and not _WARNING.search(line)
    ]
    return "; ".join(lines[:_SHOWN_ERRORS]).replace(folder, "") or "the compiler refuses it"


def decoded(data: bytes) -> FileDescriptorProto | None:
    """Return the descriptor that a client has serialized; None for any other text."""
    try:
        file = FileDescriptorProto.FromString(data)
    except DecodeError:
        return None
    return file if file.message_type or file.enum_type or file.name else None
