"""`millstream lab WALK`: shows step by step what a cluster does when something breaks.

A walk starts its own clusters. Each step does something, waits for its effect, and prints a line.
The walk ends with status 1 at the first step that fails. It removes everything at its end, however
it ends.

    command           the arguments, and the list of walks
    steps             a step: its title, its condition, its duration
    descriptions      reads the output of `millstream topics --describe`
    traffic           continuous traffic: records for every partition, produced and consumed
    programs          the programs that a walk starts
    failover          the walk in which a broker is killed and restarted
    mirror            the walks with several clusters and the mirror
    mirror_orders, mirror_parts
                      their orders, and their parts: the mirror process, topics, checks
    work_queue        the walk with a share group: more workers than partitions
    work_orders, packing_worker
                      its orders, and one of its workers
"""
