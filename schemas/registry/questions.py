"""Questions about schemas that come from outside, and their answers.

Parsing and comparing the schemas of a client can take long, so the decisions of the registry do not
do it: they ask a question. `Unanswered` ends a decision whose question has no answer yet; the shell
lets another process answer the question (see `judging`) and decides again. A question contains all
of its data, so its answer stays correct while the registry changes.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from schemas.registry.refusals import RegistryError

Named = tuple[tuple[str, str], ...]
"""Names and texts of a schema's references, each after its own references."""


class Parse(NamedTuple):
    """Asks whether a text is a schema. The answer is a `Parsed`."""

    schema_type: str
    text: str
    named: Named = ()


class Parsed(NamedTuple):
    """A valid schema: the text that is stored, and the one for `normalize=true`."""

    canonical: str
    normalized: str


class Write(NamedTuple):
    """Asks for a schema in another format. The answer is a text."""

    schema: Parse
    how: str


class Compare(NamedTuple):
    """Asks for the reasons against a schema after earlier versions, which are oldest first.

    The answer is a list of sentences, empty for none.
    """

    level: str
    policy: str
    schema: Parse
    earlier: tuple[tuple[int, Parse], ...]


class Find(NamedTuple):
    """Asks which of some versions is the same schema, whatever its text is.

    The answer is a list: the first such version, or nothing.
    """

    schema: Parse
    versions: tuple[tuple[int, Parse], ...]


Question = Parse | Write | Compare | Find
Ask = Callable[[Question], Any]
"""Returns the answer. Raises RegistryError for a refusal, Unanswered if there is no answer."""


class Unanswered(Exception):  # noqa: N818  # Not an error: the shell answers and decides again.
    """Ends a decision that needs an answer."""

    def __init__(self, question: Question) -> None:
        super().__init__(type(question).__name__)
        self.question = question


class Answers:
    """The answers so far; `ask` raises Unanswered for a question without an answer."""

    def __init__(self) -> None:
        self._known: dict[Question, Any] = {}

    def give(self, question: Question, answer: Any) -> None:
        self._known[question] = answer

    def ask(self, question: Question) -> Any:
        """Return an answer. Raises RegistryError for a refusal, Unanswered without an answer."""
        if question not in self._known:
            raise Unanswered(question)
        answer = self._known[question]
        if isinstance(answer, Refused):
            raise answer.error()
        return answer


class Refused(NamedTuple):
    """The answer that a text is not a schema, or cannot be checked."""

    error_code: int
    message: str

    def error(self) -> RegistryError:
        return RegistryError(self.error_code, self.message)


Answer = Parsed | str | list[str] | list[int] | Refused


def size_of(question: Question) -> int:
    """Return the number of characters of all texts in a question."""
    match question:
        case Parse():
            return len(question.text) + sum(len(text) for _, text in question.named)
        case Write():
            return size_of(question.schema)
        case Compare():
            return size_of(question.schema) + sum(size_of(each) for _, each in question.earlier)
        case Find():
            return size_of(question.schema) + sum(size_of(each) for _, each in question.versions)


def to_bytes(question: Question) -> bytes:
    return json.dumps([type(question).__name__, *question]).encode()


def question_from(data: bytes) -> Question:
    name, *parts = json.loads(data)
    if name == "Parse":
        return _parse(parts)
    if name == "Write":
        return Write(_parse(parts[0]), parts[1])
    *how, schema, versions = parts
    parsed = tuple((at, _parse(each)) for at, each in versions)
    if name == "Find":
        return Find(_parse(schema), parsed)
    level, policy = how
    return Compare(level, policy, _parse(schema), parsed)


def _parse(parts: list[Any]) -> Parse:
    schema_type, text, named = parts
    return Parse(schema_type, text, tuple((name, each) for name, each in named))


def answer_to_bytes(answer: Answer) -> bytes:
    match answer:
        case Parsed():
            told: list[Any] = ["parsed", *answer]
        case Refused():
            told = ["refused", *answer]
        case _:
            told = ["plain", answer]
    return json.dumps(told).encode()


def answer_from(data: bytes) -> Answer:
    kind, *parts = json.loads(data)
    if kind == "parsed":
        return Parsed(*parts)
    if kind == "refused":
        return Refused(*parts)
    plain: str | list[str] | list[int] = parts[0]
    return plain


def digest(data: bytes) -> bytes:
    """Return the key of a question in the memory of answers."""
    return hashlib.sha256(data).digest()
