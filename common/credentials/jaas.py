"""Kafka's spelling of login settings (`sasl.jaas.config`).

    org.apache.kafka.common.security.plain.PlainLoginModule required \
        username="admin" password="secret" user_admin="secret" user_alice="hers";

A login module's name is a word of this language, never a class that is loaded. Values stand in
double quotes, with a backslash before a quote or a backslash in them, or are single words.
"""

from typing import NamedTuple

CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
USER_PREFIX = "user_"
MAX_LENGTH = 1 << 20


class LoginSettingsError(ValueError):
    """A login that cannot be used; the message names the setting, and no secret."""


class Login(NamedTuple):
    """One entry: a login module and its options."""

    module: str
    options: dict[str, str]

    @property
    def passwords(self) -> dict[str, str]:
        """The passwords of the users that PLAIN knows, from `user_NAME="..."`."""
        return {
            name.removeprefix(USER_PREFIX): value
            for name, value in self.options.items()
            if name.startswith(USER_PREFIX)
        }


class _Word(NamedTuple):
    text: str
    is_quoted: bool = False

    def is_sign(self, sign: str) -> bool:
        return self.text == sign and not self.is_quoted


def parse_jaas(text: str) -> Login:
    """Read one entry. Raises ValueError, never with a value in it."""
    words = _words(text)
    if len(words) < 3 or not words[-1].is_sign(";"):
        raise ValueError("sasl.jaas.config must be: LOGIN_MODULE required OPTION=VALUE ... ;")
    module, flag, *rest = words[:-1]
    if flag.text.lower() not in CONTROL_FLAGS:
        raise ValueError(f"expected a control flag such as 'required' behind {module.text}")
    options: dict[str, str] = {}
    for position in range(0, len(rest), 3):
        option = rest[position : position + 3]
        if len(option) != 3 or not option[1].is_sign("="):
            raise ValueError(f"expected OPTION=VALUE behind {module.text}, at word {position + 3}")
        options[option[0].text] = option[2].text
    return Login(module.text, options)


def _words(text: str) -> list[_Word]:
    """Split into words, quoted values, `=` and `;`."""
    if len(text) > MAX_LENGTH:
        raise ValueError("sasl.jaas.config is too long")
    words: list[_Word] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character.isspace():
            position += 1
        elif character in "=;":
            words.append(_Word(character))
            position += 1
        elif character == '"':
            word, position = _quoted(text, position + 1)
            words.append(word)
        else:
            end = position
            while end < len(text) and not text[end].isspace() and text[end] not in '=;"':
                end += 1
            words.append(_Word(text[position:end]))
            position = end
    return words


def _quoted(text: str, position: int) -> tuple[_Word, int]:
    letters: list[str] = []
    while position < len(text):
        character = text[position]
        if character == '"':
            return _Word("".join(letters), is_quoted=True), position + 1
        if character == "\\" and position + 1 < len(text):
            position += 1
            character = text[position]
        letters.append(character)
        position += 1
    raise ValueError("a quoted value in sasl.jaas.config does not end")
