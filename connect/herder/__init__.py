"""What runs where, decided without doing anything: inputs in, effects out.

The herder of every worker reads one log, the config topic (standalone: a list in memory), and folds
it into `ConfigState`. Only records change that state; a request is looked at, and what it is to
change is returned as records, which the shell appends and everyone reads. `Herder.step` then
compares what this worker shall run with what it runs and returns what is to be started and stopped.

What is wanted of a connector, by its target state (rows: what it is now):

    now \\ target  STARTED           PAUSED                 STOPPED                gone
    nothing       start             status PAUSED          status STOPPED         -
    starting      wait              stop when started      stop when started      stop when started
    running       -                 stop, PAUSED           stop, STOPPED          stop
    failed        - (or restart)    forget, PAUSED         forget, STOPPED        forget
    stopping      start when over   PAUSED when over       STOPPED when over      -

and of a task, whose configuration is made by its connector when that has started:

    nothing       start *           start, paused *        - (it has no config)   status removed
    running       resume            pause                  stop                   stop
    failed        restart in a while, when errors.task.restart.max.delay.ms is set
    stopping      start when over   start when over        -                      -

(*) where tasks write in transactions (KIP-618), *fencing* comes before: the leader shuts out the
producers of the tasks there were, and writes down how many there may be now.

Invariants, held by every worker and checked by the tests:
- A task is started only when nothing of its name is running, starting or stopping on this worker.
- A started task has the configuration of the last commit record; a new one stops it first.
- Nothing runs that is not assigned to this worker, and a revoked task has stopped before the
  worker joins the group again: so no task runs twice at once.
- Task configurations count only once their commit record is read, and only when all are there.
- A task that writes in transactions starts only when no task of an earlier generation can write.
- A status is removed only by the leader, and only of what the configuration no longer has.

No file here knows a clock, a socket, a thread or a random source.
"""
