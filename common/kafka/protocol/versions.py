"""Version ranges as Kafka writes them: "0+" is 0 and up, "3-7" both ends included, "2" just one."""

from functools import cache
from typing import NamedTuple

LAST_VERSION = 32767


class VersionRange(NamedTuple):
    """The versions `first` to `last`, both included."""

    first: int
    last: int

    def includes(self, version: int) -> bool:
        """Return whether the version lies in the range."""
        return self.first <= version <= self.last


NO_VERSIONS = VersionRange(LAST_VERSION, -1)


@cache
def parse_versions(text: str) -> VersionRange:
    """Parse a range; an empty text means no version at all."""
    if not text:
        return NO_VERSIONS
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), LAST_VERSION)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))
