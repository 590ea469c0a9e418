"""`millstream lab`: labs, which a reader does, and walks, which show what a cluster does.

A lab is a page of `docs/labs`: text, commands, and what they print. The tests run each of them.
A walk starts its own clusters. Each step does something, waits for its effect, and prints a line.
The walk ends with status 1 at the first step that fails. It removes everything at its end, however
it ends.

    command           the arguments, and the list of labs and walks
    pages             a lab as a page of Markdown: read, and held against what commands print
    shell             the bash that runs the commands of a page
    walkthrough       a lab in the terminal, and how far its reader has come
    walks             a walk by its name
    steps             a step: its title, its condition, its duration
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
