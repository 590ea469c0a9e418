"""How a message is declared: once, as a class with typed fields, for all its versions.

    class MetadataRequestTopic(Struct):
        topic_id: bytes = uuid("10+", ignorable=True)
        name: str | None = string(nullable="10+")

    class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
        topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")

The right-hand side gives the wire type, the versions a field exists in (all, unless said), the
versions it may be null in, its default, its tag. It also fixes the type on the left-hand side: a
type checker refuses `name: str = string(nullable="10+")`.

An instance has a slot for every field of every version. A field that a version does not know
decodes to its default; on encoding its value is dropped when it is `ignorable`, and anything but
the default is an `EncodeError` when it is not.

Nothing is generated when a class is made, so importing a message is cheap: `__init__` is written at
the first construction, the codec of a version at its first use (`structs.py`). Names and numbers
are those of Apache Kafka 4.3's message definitions.
"""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform, overload

from common.kafka.protocol.wire import ZERO_UUID

T = TypeVar("T")
ALL_VERSIONS = "0+"


class Field:
    """One field of a message, with its wire type, versions, default and tag."""

    __slots__ = ("default", "element", "ignorable", "kind", "name", "nullable", "tag", "versions")

    name: str

    def __init__(
        self,
        kind: str,
        versions: str,
        default: object,
        *,
        nullable: str = "",
        ignorable: bool = False,
        tag: int | None = None,
    ) -> None:
        self.kind = kind
        self.versions = versions
        self.default = default
        self.nullable = nullable
        self.ignorable = ignorable
        self.tag = tag
        self.element: str | type[Struct] = ""  # of an array or a nested struct


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Moves the declared fields out of a class body and makes slots of them."""

    __fields__: dict[str, Field]

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **declared: Any
    ) -> "StructType":
        """Make the class; `declared` are its `api_key`, `versions` and first `flexible` version."""
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, field in fields.items():
            field.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace.setdefault("__fields__", fields)
        made = super().__new__(cls, name, bases, namespace)
        for key, value in declared.items():
            setattr(made, f"__{key}__", value)
        return made

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **declared: Any
    ) -> None:
        super().__init__(name, bases, namespace)


class Struct(metaclass=StructType):
    """A part of a message. Compared by its fields; not hashable."""

    __fields__: ClassVar[dict[str, Field]]

    def __init__(self, **values: Any) -> None:
        made = type(self)
        made.__init__ = compile_init(made)  # type: ignore[method-assign]
        made.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.__fields__ is not other.__fields__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__fields__)

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults."""
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in self.__fields__.values()
            if getattr(self, field.name) != default_value(field)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A whole message: a request, a response, or a record of one of Kafka's own logs."""

    __api_key__: ClassVar[int] = -1
    __versions__: ClassVar[str]
    __flexible__: ClassVar[str] = ""


def compile_init(struct: type[Struct]) -> Any:
    """Write `__init__` with one keyword per field, each with Kafka's default."""
    parameters, body, names = [], [], {"missing": object()}
    for name, field in struct.__fields__.items():
        if field.kind == "array" and field.default is not None:
            parameters.append(f"{name}=missing")
            body.append(f"self.{name} = [] if {name} is missing else {name}")
        elif field.kind == "struct" and field.default is not None and not is_shared(field):
            names[f"new_{name}"] = field.element
            parameters.append(f"{name}=missing")
            body.append(f"self.{name} = new_{name}() if {name} is missing else {name}")
        else:
            names[f"default_{name}"] = default_value(field)
            parameters.append(f"{name}=default_{name}")
            body.append(f"self.{name} = {name}")
    keywords = "".join(f", {parameter}" for parameter in parameters)
    text = f"def __init__(self{', *' if parameters else ''}{keywords}):\n "
    exec(text + "\n ".join(body or ["pass"]), names)
    return names["__init__"]


def default_value(field: Field) -> Any:
    """Return the default of a field; a new one where it could be changed."""
    if field.default is None:
        return None
    if field.kind == "array":
        return []
    if field.kind == "struct":
        element = cast("type[Struct]", field.element)
        return shared_default(element) if is_shared(field) else element()
    return field.default


def is_shared(field: Field) -> bool:
    """Return whether all messages share one default for this nested struct.

    They do when it holds nothing but plain values: a Fetch response has three such structs per
    partition, nearly always in their default state.
    """
    element = cast("type[Struct]", field.element)
    return all(inner.kind not in {"array", "struct"} for inner in element.__fields__.values())


_shared_defaults: dict[type[Struct], Struct] = {}


def shared_default(struct: type[Struct]) -> Struct:
    """Return the one default instance of a struct, which refuses to be changed."""
    if struct not in _shared_defaults:

        def refuse(self: Struct, name: str, value: object) -> None:
            raise AttributeError(f"the default {struct.__name__} is shared: assign a new one")

        body = {
            "__setattr__": refuse,
            "__reduce__": lambda self: (struct, ()),  # a copy may be changed
            "__fields__": struct.__fields__,
        }
        frozen = StructType(struct.__name__, (struct,), body)
        default: Struct = object.__new__(cast(type[Struct], frozen))
        for field in struct.__fields__.values():
            object.__setattr__(default, field.name, field.default)
        _shared_defaults[struct] = default
    return _shared_defaults[struct]


class IntegerType:
    """Declares integer fields of one width."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(
        self,
        versions: str = ALL_VERSIONS,
        *,
        default: int = 0,
        ignorable: bool = False,
        tag: int | None = None,
    ) -> int:
        """Declare a field."""
        return cast(int, Field(self.kind, versions, default, ignorable=ignorable, tag=tag))


int8 = IntegerType("int8")
int16 = IntegerType("int16")
uint16 = IntegerType("uint16")
int32 = IntegerType("int32")
uint32 = IntegerType("uint32")
int64 = IntegerType("int64")


def boolean(
    versions: str = ALL_VERSIONS,
    *,
    default: bool = False,
    ignorable: bool = False,
    tag: int | None = None,
) -> bool:
    """Declare a boolean field."""
    return cast(bool, Field("bool", versions, default, ignorable=ignorable, tag=tag))


def float64(
    versions: str = ALL_VERSIONS,
    *,
    default: float = 0.0,
    ignorable: bool = False,
    tag: int | None = None,
) -> float:
    """Declare a floating-point field."""
    return cast(float, Field("float64", versions, default, ignorable=ignorable, tag=tag))


def uuid(versions: str = ALL_VERSIONS, *, ignorable: bool = False, tag: int | None = None) -> bytes:
    """Declare a UUID field: 16 bytes, all zero by default."""
    return cast(bytes, Field("uuid", versions, ZERO_UUID, ignorable=ignorable, tag=tag))


@overload
def string(
    versions: str = ..., *, default: str = ..., ignorable: bool = ..., tag: int | None = ...
) -> str: ...
@overload
def string(
    versions: str = ...,
    *,
    nullable: str,
    default: str | None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
) -> str | None: ...
def string(
    versions: str = ALL_VERSIONS,
    *,
    nullable: str = "",
    default: str | None = "",
    ignorable: bool = False,
    tag: int | None = None,
) -> str | None:
    """Declare a string field."""
    field = Field("string", versions, default, nullable=nullable, ignorable=ignorable, tag=tag)
    return cast(str, field)


@overload
def binary(versions: str = ..., *, ignorable: bool = ...) -> bytes: ...
@overload
def binary(
    versions: str = ..., *, nullable: str, default: bytes | None = ..., ignorable: bool = ...
) -> bytes | None: ...
def binary(
    versions: str = ALL_VERSIONS,
    *,
    nullable: str = "",
    default: bytes | None = b"",
    ignorable: bool = False,
) -> bytes | None:
    """Declare a field of opaque bytes."""
    return cast(bytes, Field("bytes", versions, default, nullable=nullable, ignorable=ignorable))


def records(versions: str = ALL_VERSIONS, *, nullable: str = ALL_VERSIONS) -> Any:
    """Declare a field of record batches, which no codec ever copies or looks into.

    Any, because what comes in is bytes and what goes out may be a `Blob` of file regions.
    """
    return Field("records", versions, None, nullable=nullable)


@overload
def array(
    element: Callable[..., T],
    versions: str = ...,
    *,
    ignorable: bool = ...,
    tag: int | None = ...,
) -> list[T]: ...
@overload
def array(
    element: Callable[..., T],
    versions: str = ...,
    *,
    nullable: str,
    default: None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
) -> list[T] | None: ...
def array(
    element: Callable[..., T],
    versions: str = ALL_VERSIONS,
    *,
    nullable: str = "",
    default: Any = (),
    ignorable: bool = False,
    tag: int | None = None,
) -> list[T] | None:
    """Declare an array of structs or of primitive values: `array(Broker)`, `array(int32)`."""
    field = Field("array", versions, default, nullable=nullable, ignorable=ignorable, tag=tag)
    field.element = _element_of(element)
    return cast("list[T]", field)


@overload
def nested(
    struct: type[T], versions: str = ..., *, ignorable: bool = ..., tag: int | None = ...
) -> T: ...
@overload
def nested(
    struct: type[T],
    versions: str = ...,
    *,
    nullable: str,
    default: None = ...,
    ignorable: bool = ...,
    tag: int | None = ...,
) -> T | None: ...
def nested(
    struct: type[T],
    versions: str = ALL_VERSIONS,
    *,
    nullable: str = "",
    default: Any = (),
    ignorable: bool = False,
    tag: int | None = None,
) -> T | None:
    """Declare a field that holds one struct."""
    field = Field("struct", versions, default, nullable=nullable, ignorable=ignorable, tag=tag)
    field.element = cast("type[Struct]", struct)
    return cast(T, field)


def _element_of(declaration: object) -> str | type[Struct]:
    if isinstance(declaration, StructType):
        return cast("type[Struct]", declaration)
    if isinstance(declaration, IntegerType):
        return declaration.kind
    return _KINDS_BY_DECLARATION[declaration]


_KINDS_BY_DECLARATION: dict[object, str] = {string: "string", uuid: "uuid", binary: "bytes"}
