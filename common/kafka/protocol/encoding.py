"""Writes the function that encodes one version of one message.

The function is straight-line code: `encode(o, w, parts)` puts pieces of bytes into the list `w`.
Neighbouring fields of fixed width are packed at once, together with old-style lengths and with the
zero byte of an empty tag section. Only a record blob is not packed: it goes into `parts` behind
everything written so far, so that it is never copied (`wire.put_blob`).

A large message is encoded in pieces by a second function of the same lines: a generator that yields
within every array, so that its caller can do other work between two pieces.

Both note the error codes that they write, if there are any: one returns the list, the other yields
it each time.
"""

from collections.abc import Callable, Generator
from struct import Struct as Packer
from typing import Any, cast

from common.kafka.protocol.layout import (
    FIXED_FORMATS,
    NUMBER_FORMATS,
    is_nullable,
    layout_of,
    null_marker,
)
from common.kafka.protocol.message import Field, Struct, default_value
from common.kafka.protocol.source import Source
from common.kafka.protocol.wire import (
    COMPACT_LENGTHS,
    Buffer,
    EncodeError,
    NumberEncoders,
    Part,
    blob_size_bytes,
    encode_uuids,
    encode_uvarint,
    put_blob,
)

Encode = Callable[[Any, list[Buffer], list[Part]], list[int]]
EncodeInPieces = Callable[[Any, list[Buffer], list[Part]], Generator[list[int], None, None]]

CODES = ("error_code", "partition_error_code")
"""The fields with errors that Apache Kafka counts, wherever they are in an answer."""

ELEMENTS_PER_PIECE = 512
"""This many elements take less than a millisecond."""

NUMBER_ENCODERS = {
    flexible: {
        number: NumberEncoders(number, flexible=flexible) for number in NUMBER_FORMATS.values()
    }
    for flexible in (False, True)
}


def write_encoder(struct: type[Struct], version: int, *, flexible: bool) -> Encode:
    """Write and compile the encode function of one version."""
    return cast(Encode, EncoderWriter(version, flexible=flexible).write(struct))


def write_encoder_in_pieces(
    struct: type[Struct], version: int, *, flexible: bool
) -> EncodeInPieces:
    """Write and compile the generator that encodes one version of a large message."""
    writer = EncoderWriter(version, flexible=flexible, in_pieces=True)
    return cast(EncodeInPieces, writer.write(struct))


class EncoderWriter:
    """Writes the lines of one encode function, field by field.

    Statements are written at once; the pieces they prepare wait in `_pieces` and become one
    `w += (...)` when a loop or a branch forces it.
    """

    def __init__(self, version: int, *, flexible: bool, in_pieces: bool = False) -> None:
        self.source = Source("def encode(o, w, parts):")
        self._version = version
        self._flexible = flexible
        self._in_pieces = in_pieces
        self._output = "w"
        self._pieces: list[str] = []
        self._run: list[tuple[str, str]] = []  # format and value of fixed fields not yet packed

    def write(self, struct: type[Struct]) -> Any:
        """Write and compile the whole function."""
        self.source.line("codes = []")
        if self._in_pieces:
            self.source.line("yield codes")
        self.write_struct("o", struct)
        self.flush()
        self.source.line("return codes")
        return self.source.compile("encode", f"encode {struct.__name__} v{self._version}")

    def write_struct(self, value: str, struct: type[Struct]) -> None:
        """Write the encoding of the struct that the expression `value` holds."""
        layout = layout_of(struct, self._version)
        for field in layout.absent:
            if not field.ignorable:
                self._write_absent(value, struct, field)
        for field in layout.plain:
            self._write_field(f"{value}.{field.name}", struct, field)
        if self._flexible:
            self._write_tags(value, struct, layout.tagged)

    def flush(self) -> None:
        """Write all pieces that wait."""
        self._end_run()
        pieces, self._pieces = self._pieces, []
        if pieces:
            self.source.line(f"{self._output} += ({', '.join(pieces)},)")

    def _end_run(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        values = [value for number, value in run if number != "x"]
        if not values:
            self._pieces.append(repr(bytes(len(run))))
            return
        formats = ">" + "".join(number for number, _ in run)
        pack = self.source.constant(formats, Packer(formats).pack)
        self._pieces.append(f"{pack}({', '.join(values)})")

    def _add_piece(self, expression: str) -> None:
        self._end_run()
        self._pieces.append(expression)

    def _write_refusal(self, condition: str, problem: str) -> None:
        error = self.source.constant("EncodeError", EncodeError)
        with self.source.block(f"if {condition}:"):
            self.source.line(f"raise {error}({problem!r})")

    def _default(self, field: Field) -> str:
        if field.kind == "array" and field.default is not None:
            return "[]"
        if field.kind == "struct" and field.default is not None:
            return self.source.constant(("default", field.element), default_value(field))
        return repr(field.default)

    def _differs_from_default(self, value: str, field: Field) -> str:
        """Return the condition that a field must be written although it may be left out."""
        default = self._default(field)
        if field.default is None:
            return f"{value} is not None"
        if field.kind == "struct":
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {default}"

    def _write_absent(self, value: str, struct: type[Struct], field: Field) -> None:
        condition = self._differs_from_default(f"{value}.{field.name}", field)
        what = f"{struct.__name__}.{field.name}"
        self._write_refusal(condition, f"{what} cannot be said in version {self._version}")

    def _write_field(self, value: str, struct: type[Struct], field: Field) -> None:
        what = f"{struct.__name__}.{field.name}"
        nullable = is_nullable(field, self._version)
        if field.kind == "uuid":
            self._write_refusal(f"len({value}) != 16", f"{what} needs 16 bytes")
        if field.name in CODES:
            with self.source.block(f"if {value}:"):
                self.source.line(f"codes.append({value})")
        if field.kind in FIXED_FORMATS:
            self._run.append((FIXED_FORMATS[field.kind], value))
        elif field.kind == "struct":
            self._write_nested(value, field, nullable)
        elif field.kind == "array":
            self._write_array(value, field.element, nullable)
        elif field.kind == "records":
            self._write_blob(value, nullable)
        else:
            self._write_sized(value, field.kind, nullable)

    def _write_count(self, counted: str, size: str, nullable: bool, old_format: str) -> None:
        """Add the length or count `size` of `counted`, or the mark for null."""
        if nullable:
            size = f"-1 if {counted} is None else {size}"
        if not self._flexible:
            length = self.source.name("n")
            self.source.line(f"{length} = {size}")
            self._run.append((old_format, length))
            return
        lengths = self.source.constant("lengths", COMPACT_LENGTHS)
        self._add_piece(f"{lengths}[{size}]")

    def _write_sized(self, value: str, kind: str, nullable: bool) -> None:
        source = self.source
        text = source.name("s")
        expression = f"{value}.encode()" if kind == "string" else value
        if nullable:
            source.line(f"{text} = {value}")
            if kind == "string":
                with source.block(f"if {text} is not None:"):
                    source.line(f"{text} = {text}.encode()")
        else:
            source.line(f"{text} = {expression}")
        self._write_count(text, f"len({text})", nullable, "h" if kind == "string" else "i")
        self._add_piece(f"{text} or b''" if nullable else text)

    def _write_blob(self, value: str, nullable: bool) -> None:
        source = self.source
        blob = source.name("b")
        source.line(f"{blob} = {value}")
        size = source.constant("blob_size_bytes", blob_size_bytes)
        self._write_count(
            blob, f"(len({blob}) if {blob}.__class__ is bytes else {size}({blob}))", nullable, "i"
        )
        self.flush()
        put = source.constant("put_blob", put_blob)
        with source.block(f"if {blob} is not None:"):
            source.line(f"{put}({blob}, {self._output}, parts)")

    def _write_array(self, value: str, element: str | type[Struct], nullable: bool) -> None:
        source = self.source
        elements = source.name("a")
        source.line(f"{elements} = {value}")
        if isinstance(element, str) and element in NUMBER_FORMATS:
            self._write_numbers(elements, NUMBER_FORMATS[element], nullable)
            return
        self._write_count(elements, f"len({elements})", nullable, "i")
        if element == "uuid":
            join = source.constant("encode_uuids", encode_uuids)
            self._add_piece(f"{join}({elements}{' or ()' if nullable else ''})")
            return
        self.flush()
        each = source.name("o")
        all_of_them = f"{elements}{' or ()' if nullable else ''}"
        index = source.name("i")
        loop = f"for {each} in {all_of_them}:"
        if self._in_pieces:
            loop = f"for {index}, {each} in enumerate({all_of_them}):"
        with source.block(loop):
            if self._in_pieces:
                with source.block(f"if not {index} % {ELEMENTS_PER_PIECE}:"):
                    source.line("yield codes")
            if isinstance(element, str):
                self._write_sized(each, element, nullable=False)
            else:
                self.write_struct(each, element)
            self.flush()

    def _write_numbers(self, numbers: str, number_format: str, nullable: bool) -> None:
        encoders = NUMBER_ENCODERS[self._flexible][number_format]
        name = self.source.constant(("numbers", number_format), encoders)
        count = self.source.name("n")
        none = f"0 if {numbers} is None else " if nullable else ""
        self.source.line(f"{count} = {none}len({numbers})")
        bias = " + 1" if self._flexible else ""
        piece = f"{name}[{count}]({count}{bias}, *{numbers})"
        if nullable:
            null = b"\x00" if self._flexible else b"\xff\xff\xff\xff"
            piece = f"({null!r} if {numbers} is None else {piece})"
        self._add_piece(piece)

    def _write_nested(self, value: str, field: Field, nullable: bool) -> None:
        source = self.source
        struct = cast("type[Struct]", field.element)
        inner = source.name("o")
        source.line(f"{inner} = {value}")
        if not nullable:
            self.write_struct(inner, struct)
            return
        self.flush()
        with source.block(f"if {inner} is None:"):
            self._run.append(("b", str(null_marker(field))))
            self.flush()
        with source.block("else:"):
            self._run.append(("b", "1"))
            self.write_struct(inner, struct)
            self.flush()

    def _write_tags(self, value: str, struct: type[Struct], tagged: list[Field]) -> None:
        if not tagged:
            self._run.append(("x", ""))
            return
        source = self.source
        tags = source.name("tags")
        uvarint = source.constant("uvarint", encode_uvarint)
        source.line(f"{tags} = ()")
        for field in tagged:
            condition = self._differs_from_default(f"{value}.{field.name}", field)
            with source.block(f"if {condition}:"):
                joined = self._write_apart(f"{value}.{field.name}", struct, field)
                tag = encode_uvarint(cast(int, field.tag))
                source.line(f"{tags} += ({tag!r}, {uvarint}(len({joined})), {joined})")
        section = f"b''.join(({uvarint}(len({tags}) // 3), *{tags}))"
        self._add_piece(f"({section} if {tags} else b'\\0')")

    def _write_apart(self, value: str, struct: type[Struct], field: Field) -> str:
        """Write a field into bytes of its own; return the name that holds them."""
        outside = self._output, self._pieces, self._run
        self._output, self._pieces, self._run = self.source.name("w"), [], []
        self.source.line(f"{self._output} = []")
        self._write_field(value, struct, field)
        self.flush()
        joined = self.source.name("j")
        self.source.line(f"{joined} = b''.join({self._output})")
        self._output, self._pieces, self._run = outside
        return joined
