"""A parser of arguments that suggests what may have been meant."""

import argparse
import re
from typing import NoReturn

from millrace.help_text import suggestion

_UNKNOWN = re.compile(r"unrecognized arguments: (?P<first>--?[\w-]+)")


class HintingParser(argparse.ArgumentParser):
    """As argparse's; the error for a mistyped flag names the one that is like it."""

    def error(self, message: str) -> NoReturn:
        found = _UNKNOWN.search(message)
        flags = [flag for action in self._actions for flag in action.option_strings]
        super().error(message + (suggestion(found["first"], flags) if found else ""))
