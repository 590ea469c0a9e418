"""Says in sentences why a record, a group, a producer or a transaction is as it is.

    facts         what is known of a cluster, as plain values; None is what is not known
    causes        the tables of causes: each has a code, a predicate, a sentence, an advice
    rights        how access rules are read
    words         how figures stand in a sentence: counts, times, sizes, names
    explanations  the facts go through the tables, and findings come out
    asking        the only part with IO: it asks a cluster for the facts
    subjects      asks and explains: what the command and a console call
    report        an explanation as text, as JSON, and all causes as a table for the documentation
    command       `millstream explain`

Everything but `asking`, `subjects` and `command` is pure: time is an argument. A fact that the
cluster refuses or does not know is a finding of its own, and never guessed. To add a cause, add a
row to one of the tables, a test of its row in `tests/explain/`, and a test in which real brokers
get into that state.
"""
