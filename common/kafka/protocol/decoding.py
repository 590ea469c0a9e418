"""Writes the function that decodes one version of one message.

The function is straight-line code: `decode(buf, pos, end) -> (message, pos)`. Neighbouring fields
of fixed width are read by one `unpack_from`, together with the length (or the first byte of the
compact length) of what follows them. Every length and count is compared with the bytes that are
left before anything is built from it; each counted element is assumed to have its smallest size.
The count of an array in a request is also compared with its limit (`array_limits`): inside a loop
the counts of all rounds together.

For `MetadataRequest` version 9 the core of it reads

    n2 = buf[pos]
    pos += 1
    if n2 > 127:
     if buf[pos] < 128:
      n2 += (buf[pos] << 7) - 128
      pos += 1
     else:
      n2, pos = finish_uvarint(buf, pos, n2)
    if n2 == 0:
     o1.topics = None
    else:
     n2 -= 1
     if not 0 <= n2 <= (end - pos) // 2:
      raise DecodeError('MetadataRequest.topics does not fit')
     if n2 > 50000:
      raise DecodeError('MetadataRequest.topics has more than 50000 entries')
     o1.topics = a3 = []
     for _ in range(n2):
      ...
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from struct import Struct as Packer
from struct import calcsize
from typing import Any, cast

from common.kafka.protocol.array_limits import DEFAULT_LIMIT, limits_of
from common.kafka.protocol.layout import (
    FIXED_FORMATS,
    NUMBER_FORMATS,
    is_nullable,
    layout_of,
    min_length_size_bytes,
    min_size_bytes,
    null_marker,
)
from common.kafka.protocol.message import Field, Message, Struct, default_value, is_shared
from common.kafka.protocol.source import Source
from common.kafka.protocol.wire import (
    MAX_TAGS,
    Buffer,
    DecodeError,
    NumberDecoders,
    decode_tag,
    finish_uvarint,
    skip_tags,
)

Decode = Callable[[Buffer, int, int], tuple[Any, int]]
DecodeInPieces = Callable[[Buffer, int, int], Generator[None, None, tuple[Any, int]]]

ELEMENTS_PER_PIECE = 512
"""This many elements take less than a millisecond."""
MAX_STRING_BYTES = 32_767
"""The limit also holds for lengths of more bits: Kafka reads both kinds with the same code."""
MAX_COPIED_BLOB_BYTES = 1 << 20
"""A larger value is given as a view of the frame: a copy of 100 MB takes 50 ms, and most handlers
refuse a value of this size. A handler that keeps the value copies it."""

NUMBER_DECODERS = {number: NumberDecoders(number) for number in NUMBER_FORMATS.values()}
LENGTH_FORMATS = {"string": "h", "bytes": "i", "records": "i", "array": "i"}
CONVERSIONS = {
    "string": "str(buf[pos:stop], 'utf-8')",
    "bytes": "bytes(buf[pos:stop])",
    "records": "buf[pos:stop]",
}


def write_decoder(message: type[Message], version: int, *, flexible: bool) -> Decode:
    """Write and compile the decode function of one version."""
    return cast(Decode, DecoderWriter(version, flexible=flexible).write(message))


def write_decoder_in_pieces(
    message: type[Message], version: int, *, flexible: bool
) -> DecodeInPieces:
    """Write and compile the generator that decodes one version of a large message."""
    writer = DecoderWriter(version, flexible=flexible, in_pieces=True)
    return cast(DecodeInPieces, writer.write(message))


class DecoderWriter:
    """Writes the lines of one decode function, field by field."""

    def __init__(self, version: int, *, flexible: bool, in_pieces: bool = False) -> None:
        self.source = Source("def decode(buf, pos, end):")
        self._version = version
        self._flexible = flexible
        self._in_pieces = in_pieces
        self._run: list[tuple[str, str]] = []  # format and target of fixed fields not yet read
        self._limits: dict[str, int] | None = None  # of arrays, by path; None: without limits
        self._path = ""  # of the fields that lead to the struct that is being written
        self._loops = 0  # around the lines that are being written

    def write(self, message: type[Message]) -> Any:
        """Write and compile the whole function."""
        self._write_pause()
        self._limits = limits_of(message)
        if self._limits is not None:
            for path in self._counted_arrays(message):
                self.source.line(f"{_room_of(path)} = {self._limits.get(path, DEFAULT_LIMIT)}")
        decoded = self.write_struct(message)
        self.flush()
        self.source.line(f"return {decoded}, pos")
        return self.source.compile("decode", f"decode {message.__name__} v{self._version}")

    def _counted_arrays(
        self, struct: type[Struct], path: str = "", *, is_in_loop: bool = False
    ) -> Iterator[str]:
        """Give the paths of the arrays that are inside another array."""
        layout = layout_of(struct, self._version)
        for field in (*layout.plain, *layout.tagged):
            name = f"{path}{field.name}"
            if field.kind == "array" and is_in_loop:
                yield name
            if isinstance(field.element, type):
                is_looped = is_in_loop or field.kind == "array"
                yield from self._counted_arrays(field.element, f"{name}.", is_in_loop=is_looped)

    def write_struct(self, struct: type[Struct]) -> str:
        """Write the decoding of a struct; return the local name that will hold it."""
        source = self.source
        layout = layout_of(struct, self._version)
        decoded = source.name("o")
        new = source.constant("new", object.__new__)
        source.line(f"{decoded} = {new}({source.constant(struct, struct)})")
        for field in layout.absent + layout.tagged:
            source.line(f"{decoded}.{field.name} = {self._default(field)}")
        for field in layout.plain:
            self._write_field(f"{decoded}.{field.name}", struct, field)
        if self._flexible:
            self._write_tags(decoded, struct, layout.tagged)
        return decoded

    def flush(self) -> None:
        """Write the reading of the fixed fields gathered so far."""
        run, self._run = self._run, []
        if not run:
            return
        formats = ">" + "".join(number for number, _ in run)
        if formats == ">B":
            self.source.line(f"{run[0][1]} = buf[pos]")
        else:
            unpack = self.source.constant(formats, Packer(formats).unpack_from)
            targets = ", ".join(target for _, target in run)
            self.source.line(f"{targets}, = {unpack}(buf, pos)")
        self.source.line(f"pos += {calcsize(formats)}")

    def _write_pause(self) -> None:
        if self._in_pieces:
            self.source.line("yield")

    def _default(self, field: Field) -> str:
        if field.kind == "array" and field.default is not None:
            return "[]"
        if field.kind == "struct" and field.default is not None:
            if is_shared(field):
                return self.source.constant(("default", field.element), default_value(field))
            return f"{self.source.constant(field.element, field.element)}()"
        return repr(field.default)

    def _write_field(self, target: str, struct: type[Struct], field: Field) -> None:
        what = f"{struct.__name__}.{field.name}"
        nullable = is_nullable(field, self._version)
        if field.kind in FIXED_FORMATS:
            self._run.append((FIXED_FORMATS[field.kind], target))
        elif field.kind == "struct":
            self._write_nested(target, field, what, nullable)
        elif field.kind == "array":
            self._write_array(target, field, what, nullable)
        else:
            self._write_sized(target, field.kind, what, nullable)

    def _write_length(self, kind: str, what: str) -> str:
        """Write the reading of a length or count; return the name that holds it, as on the wire."""
        length = self.source.name("n")
        self._run.append(("B" if self._flexible else LENGTH_FORMATS[kind], length))
        self.flush()
        if self._flexible:
            self._write_varint_rest(length, what if kind == "string" else "")
        return length

    def _write_varint_rest(self, name: str, string: str = "") -> None:
        """Write the rest of a number; of the length of a `string` also its check, if not short."""
        finish = self.source.constant("finish_uvarint", finish_uvarint)
        with self.source.block(f"if {name} > 127:"):
            with self.source.block("if buf[pos] < 128:"):
                self.source.line(f"{name} += (buf[pos] << 7) - 128")
                self.source.line("pos += 1")
            with self.source.block("else:"):
                self.source.line(f"{name}, pos = {finish}(buf, pos, {name})")
            if string:
                too_long = f"is longer than {MAX_STRING_BYTES} bytes"
                self._write_refusal(f"{name} > {MAX_STRING_BYTES + 1}", string, too_long)

    def _write_unless_null(
        self, target: str, length: str, nullable: bool, write_value: Callable[[], None]
    ) -> None:
        """Write the value behind a length; null ends here, or fails the value's own check."""
        if not nullable:
            write_value()
            return
        with self.source.block(f"if {length} == {'0' if self._flexible else '-1'}:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            write_value()
            self.flush()

    def _write_refusal(self, condition: str, what: str, why: str) -> None:
        error = self.source.constant("DecodeError", DecodeError)
        with self.source.block(f"if {condition}:"):
            self.source.line(f"raise {error}({f'{what} {why}'!r})")

    def _write_sized(self, target: str, kind: str, what: str, nullable: bool) -> None:
        length = self._write_length(kind, what)

        def write_value() -> None:
            self.source.line(f"stop = pos + {length}{' - 1' if self._flexible else ''}")
            self._write_refusal("not pos <= stop <= end", what, "does not fit")
            value = CONVERSIONS[kind]
            if kind == "bytes" and self._in_pieces:
                view = CONVERSIONS["records"]
                value = f"{value} if stop - pos <= {MAX_COPIED_BLOB_BYTES} else {view}"
            self.source.line(f"{target} = {value}")
            self.source.line("pos = stop")

        self._write_unless_null(target, length, nullable, write_value)

    def _write_array(self, target: str, field: Field, what: str, nullable: bool) -> None:
        element = field.element
        count = self._write_length("array", what)

        def write_value() -> None:
            if self._flexible:
                self.source.line(f"{count} -= 1")
            if isinstance(element, str) and element in FIXED_FORMATS:
                self._write_numbers(target, field, count, what)
            else:
                self._write_elements(target, field, count, what)

        self._write_unless_null(target, count, nullable, write_value)

    def _write_limit(self, field: Field, count: str, what: str) -> None:
        """Write the comparison of a count, which is not negative, with the limit of its array."""
        if self._limits is None:
            return
        path = f"{self._path}{field.name}"
        limit = self._limits.get(path, DEFAULT_LIMIT)
        why = f"has more than {limit} entries"
        if self._loops:
            self.source.line(f"{_room_of(path)} -= {count}")
            self._write_refusal(f"{_room_of(path)} < 0", what, why)
        else:
            self._write_refusal(f"{count} > {limit}", what, why)

    @contextmanager
    def _inside(self, field: Field, *, loops: int) -> Iterator[None]:
        outside = self._path, self._loops
        self._path, self._loops = f"{self._path}{field.name}.", self._loops + loops
        yield
        self._path, self._loops = outside

    def _write_numbers(self, target: str, field: Field, count: str, what: str) -> None:
        kind = cast(str, field.element)
        number = FIXED_FORMATS[kind]
        width = calcsize(">" + number)
        self.source.line(f"stop = pos + {count} * {width}")
        self._write_refusal("not pos <= stop <= end", what, "does not fit")
        self._write_limit(field, count, what)
        if kind == "uuid":
            uuids = f"[bytes(buf[at:at + {width}]) for at in range(pos, stop, {width})]"
            self.source.line(f"{target} = {uuids}")
        else:
            decoders = self.source.constant(("numbers", number), NUMBER_DECODERS[number])
            self.source.line(f"{target} = [*{decoders}[{count}](buf, pos)]")
        self.source.line("pos = stop")

    def _write_elements(self, target: str, field: Field, count: str, what: str) -> None:
        element = field.element
        least = (
            min_length_size_bytes(element, flexible=self._flexible)
            if isinstance(element, str)
            else min_size_bytes(element, self._version, flexible=self._flexible)
        )
        assert least > 0, (what, "an element without bytes would leave its count unbounded")
        self._write_refusal(f"not 0 <= {count} <= (end - pos) // {least}", what, "does not fit")
        self._write_limit(field, count, what)
        elements, add = self.source.name("a"), self.source.name("add")
        self.source.line(f"{target} = {elements} = []")
        self.source.line(f"{add} = {elements}.append")
        with self.source.block(f"for _ in range({count}):"):
            if self._in_pieces:
                with self.source.block(f"if not len({elements}) % {ELEMENTS_PER_PIECE}:"):
                    self._write_pause()
            if isinstance(element, str):
                decoded = self.source.name("s")
                self._write_sized(decoded, element, what, nullable=False)
            else:
                with self._inside(field, loops=1):
                    decoded = self.write_struct(element)
            self.flush()
            self.source.line(f"{add}({decoded})")

    def _write_nested(self, target: str, field: Field, what: str, nullable: bool) -> None:
        struct = cast("type[Struct]", field.element)
        if not nullable:
            with self._inside(field, loops=0):
                decoded = self.write_struct(struct)
            self.source.line(f"{target} = {decoded}")
            return
        marker = self.source.name("n")
        self._run.append(("b", marker))
        self.flush()
        unknown = f"{marker} != 1 and {marker} != {null_marker(field)}"
        self._write_refusal(unknown, what, "has no null marker")
        with self.source.block(f"if {marker} != 1:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            with self._inside(field, loops=0):
                decoded = self.write_struct(struct)
            self.flush()
            self.source.line(f"{target} = {decoded}")

    def _write_tags(self, decoded: str, struct: type[Struct], tagged: list[Field]) -> None:
        source = self.source
        count = source.name("t")
        self._run.append(("B", count))
        self.flush()
        if not tagged:
            skip = source.constant("skip_tags", skip_tags)
            with source.block(f"if {count}:"):
                self._write_pause()
                source.line(f"pos = {skip}(buf, pos, end, {count})")
            return
        tag, stop = source.name("tag"), source.name("stop")
        with source.block(f"if {count}:"):
            self._write_pause()
            self._write_varint_rest(count)
            too_many = f"{count} > {MAX_TAGS}"
            self._write_refusal(too_many, struct.__name__, f"has more than {MAX_TAGS} tags")
            source.line(f"{tag} = -1")
            with source.block(f"for _ in range({count}):"):
                next_tag = source.constant("decode_tag", decode_tag)
                source.line(f"{tag}, pos, {stop} = {next_tag}(buf, pos, end, {tag})")
                for number, field in enumerate(tagged):
                    with source.block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                        self._write_field(f"{decoded}.{field.name}", struct, field)
                        self.flush()
                        what = f"{struct.__name__}.{field.name}"
                        self._write_refusal(f"pos != {stop}", what, "is not as long as its tag")
                with source.block("else:"):
                    source.line(f"pos = {stop}")


def _room_of(path: str) -> str:
    """Return the local name of how many entries the array at a path may still have."""
    return "room_" + path.replace(".", "_")
