"""What the tools for groups of every type say after a deletion."""

import sys
from collections.abc import Collection, Mapping


def told_deletions(kind: str, wanted: Collection[str], problems: Mapping[str, object]) -> int:
    """Print which groups of a kind were deleted and which were not; return the exit status."""
    done = ", ".join(f"'{group_id}'" for group_id in sorted(set(wanted) - problems.keys()))
    if not problems:
        print(f"Deletion of requested {kind} groups ({done}) was successful.")
        return 0
    print(f"\nError: Deletion of some {kind} groups failed:", file=sys.stderr)
    for group_id, problem in sorted(problems.items()):
        print(f"* Group '{group_id}' could not be deleted due to: {problem}", file=sys.stderr)
    if done:
        print(f"\nThese {kind} groups were deleted successfully: {done}")
    return 1
