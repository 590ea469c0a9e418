"""`millrace lab WALK`: what a cluster does when something breaks, shown step by step.

A walk starts a cluster of its own, does one thing after the other, waits until each shows, and
prints it as it happens. It ends with 1 at the first step that does not come true, and leaves
nothing behind, whatever ends it.

    command           the arguments, and which walks there are
    steps             one step: what is waited for, how long it took
    descriptions      what `millrace topics --describe` says of a topic, and should say; pure
    traffic           records that are sent to every partition all the while, and read again
    failover          a broker is killed and comes back
"""

from millrace.lab.command import main

__all__ = ["main"]
