"""Where the voters are asked for their votes: at their own addresses, or at the bootstrap servers.

The voter set has the address of each voter, and only a leader can change it. Voters that have all
moved would elect nobody. So a voter without a leader looks for the others at the bootstrap servers
too, each second time. A request names the voter and its directory: another node refuses it.
"""

Address = tuple[str, int]


class VoterSearch:
    """The search of one node; `servers` are its bootstrap servers, perhaps none."""

    def __init__(self, servers: tuple[Address, ...]) -> None:
        self.servers = servers
        self._attempts: dict[int, int] = {}
        self._detours: dict[int, Address] = {}
        """By voter, the bootstrap server that is asked instead of the voter's own address."""
        self._found: set[int] = set()
        """The voters that have answered where they were asked last: the next request goes there."""

    def detour_of(self, voter: int) -> Address | None:
        """Return the bootstrap server at which a voter is asked; None for its own address."""
        return self._detours.get(voter)

    def aim(self, voter: int, *, is_wide: bool) -> None:
        """Choose the address for the next request; `is_wide` includes the bootstrap servers."""
        if voter in self._found:
            self._found.remove(voter)
            return
        self._detours.pop(voter, None)
        if is_wide and self.servers:
            attempt = self._attempts[voter] = self._attempts.get(voter, 0) + 1
            if attempt % 2 == 0:
                self._detours[voter] = self.servers[attempt // 2 % len(self.servers)]

    def note(self, voter: int, *, is_found: bool) -> None:
        """Note if a voter was where it was asked."""
        if is_found:
            self._found.add(voter)
        else:
            self._found.discard(voter)
