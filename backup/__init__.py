"""Backs up a Kafka cluster into a folder while it runs, and restores it into another cluster.

    records    the committed records of a fetch, and the batches they are stored in
    manifest   what a backup holds beside records, as plain values and as JSON
    folder     the files of a backup, and their checksums
    taking     reads a cluster into a folder
    restoring  writes a folder into a cluster
    command    `millstream backup` and `millstream restore`

The first two are pure. A cluster is asked with Kafka's protocol only, so it may be any Kafka.
"""
