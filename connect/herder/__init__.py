"""The herder decides what runs on this worker. It is pure: inputs in, effects out.

Every worker's herder reads one log, the config topic (standalone: a list in memory), and replays it
into `ConfigState`. Only records change that state. A request is checked against the state and
answered with records; the shell appends them, and every worker reads them. `Herder.step` then
compares what this worker must run with what it runs, and returns effects: what to start and stop.

The effect for a connector, by its target state (rows: its phase on this worker):

    now \\ target  STARTED           PAUSED                 STOPPED                gone
    nothing       start             status PAUSED          status STOPPED         -
    starting      wait              stop when started      stop when started      stop when started
    running       -                 stop, PAUSED           stop, STOPPED          stop
    failed        - (or restart)    forget, PAUSED         forget, STOPPED        forget
    stopping      start when over   PAUSED when over       STOPPED when over      -

and for a task, whose configuration its connector makes when the connector has started:

    nothing       start *           start, paused *        - (it has no config)   status removed
    running       resume            pause                  stop                   stop
    failed        restart after a delay, when errors.task.restart.max.delay.ms is set
    stopping      start when over   start when over        -                      -

(*) For tasks that write in transactions (KIP-618), *fencing* comes first: the leader fences the
producers of the earlier tasks, and writes the number of the new tasks to the log.

Invariants, held by every worker and checked by the tests:
- A task is started only when no task with its id is running, starting or stopping on this worker.
- A started task has the configuration of the last commit record; a newer commit stops it first.
- Nothing runs that is not assigned to this worker, and a revoked task has stopped before the
  worker joins the group again: so no task runs twice at once.
- Task configurations are valid once their commit record is read, and only if none is missing.
- A task that writes in transactions starts only when no task of an earlier generation can write.
- Only the leader removes a status, and only of a connector or task that is not configured.

No file here uses a clock, a socket, a thread or a random source.
"""
