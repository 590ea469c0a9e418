"""The pending requests of a node: at most one to each other node.

A response counts only if it answers the pending request, and a change of role clears all pending
requests. So a node never acts on a response to a request that it sent in another role.
"""

from dataclasses import dataclass, field

_NEVER = 0


@dataclass(slots=True)
class Requests:
    """Invariant: correlation ids only grow. They start at random, so a restart uses other ids."""

    next_correlation_id: int
    timeout_ms: int
    pending: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By destination: correlation id and deadline."""
    not_before_ms: dict[int, int] = field(default_factory=dict)

    def free_at_ms(self, destination: int) -> int:
        """Return when the next request to a node may be sent."""
        _, deadline_ms = self.pending.get(destination, (0, _NEVER))
        return max(deadline_ms, self.not_before_ms.get(destination, _NEVER))

    def start(self, destination: int, now_ms: int) -> int:
        """Note that a request is sent; return its correlation id."""
        correlation_id = self.next_correlation_id
        self.next_correlation_id += 1
        self.pending[destination] = correlation_id, now_ms + self.timeout_ms
        return correlation_id

    def finish(self, destination: int, correlation_id: int) -> bool:
        """Note a response; return False if its request is not pending."""
        if self.pending.get(destination, (None, 0))[0] != correlation_id:
            return False
        del self.pending[destination]
        return True

    def back_off(self, destination: int, until_ms: int) -> None:
        """Send no request to a node until `until_ms`."""
        self.not_before_ms[destination] = until_ms

    def clear(self) -> None:
        """Forget all pending requests and backoffs."""
        self.pending.clear()
        self.not_before_ms.clear()
