"""The requests a node waits for: at most one to each other node.

A response counts only when it answers the request that is pending; with a change of role all
pending ones are forgotten. So nobody ever acts on an answer to a question of another epoch.
"""

from dataclasses import dataclass, field

_NEVER = 0


@dataclass(slots=True)
class Requests:
    """Invariant: correlation ids only grow, from a random start that differs after a restart."""

    next_correlation_id: int
    timeout_ms: int
    pending: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By destination: correlation id and deadline."""
    not_before_ms: dict[int, int] = field(default_factory=dict)

    def free_at_ms(self, destination: int) -> int:
        """Give when the next request to a node may go out."""
        _, deadline_ms = self.pending.get(destination, (0, _NEVER))
        return max(deadline_ms, self.not_before_ms.get(destination, _NEVER))

    def start(self, destination: int, now_ms: int) -> int:
        """Note that a request goes out; gives its correlation id."""
        correlation_id = self.next_correlation_id
        self.next_correlation_id += 1
        self.pending[destination] = correlation_id, now_ms + self.timeout_ms
        return correlation_id

    def finish(self, destination: int, correlation_id: int) -> bool:
        """Note an answer; False when nobody waits for it any more."""
        if self.pending.get(destination, (None, 0))[0] != correlation_id:
            return False
        del self.pending[destination]
        return True

    def back_off(self, destination: int, until_ms: int) -> None:
        """Send nothing to a node for a while."""
        self.not_before_ms[destination] = until_ms

    def clear(self) -> None:
        """Forget everything that is pending."""
        self.pending.clear()
        self.not_before_ms.clear()
