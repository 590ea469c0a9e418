"""Dead letters: records that could not be handled, set aside with the reason."""


def dead_letter_of(topic: str) -> str:
    return f"{topic}.dead-letter"
