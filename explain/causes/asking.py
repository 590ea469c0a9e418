"""What the cluster was asked for, and did not tell; and what is left out here."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from explain.causes.cause import Figures, notice
from explain.facts import Unanswered

OLD = frozenset({"UNSUPPORTED_VERSION", "UNSUPPORTED_FOR_MESSAGE_FORMAT"})


def _is_refused(one: Unanswered) -> bool:
    return one.error.endswith("AUTHORIZATION_FAILED")


def _is_unknown(one: Unanswered) -> bool:
    return one.error in OLD


def _is_lost(one: Unanswered) -> bool:
    return not (_is_refused(one) or _is_unknown(one))


def _those(
    holds: Callable[[Unanswered], bool],
) -> Callable[[Sequence[Unanswered]], Iterator[Figures]]:
    def find(unanswered: Sequence[Unanswered]) -> Iterator[Figures]:
        for one in unanswered:
            if holds(one):
                yield {"question": one.question, "error": one.error, "text": one.text}

    return find


ASKING = (
    notice(
        "asking-not-allowed",
        _those(_is_refused),
        "Not known: {question}. The user that asks lacks the right ({error}).",
        "Ask with another user (--command-config), or give this one the right with "
        "`millstream acls`.",
    ),
    notice(
        "asking-not-supported",
        _those(_is_unknown),
        "Not known: {question}. The brokers are too old for the question ({text}).",
    ),
    notice(
        "asking-without-answer",
        _those(_is_lost),
        "Not known: {question}. There was no answer ({error}: {text}).",
    ),
)


def _left_out(counts: Mapping[str, int]) -> Iterator[Figures]:
    for code, count in sorted(counts.items()):
        yield {"code": code, "count": count}


LEFT_OUT = (
    notice(
        "more-of-the-same",
        _left_out,
        "{count:more finding} of the cause {code} left out.",
        "Ask about one topic or group to see all of its findings.",
    ),
)
