"""Backs up a Kafka cluster while it runs, and restores it into another cluster.

    records    the committed records of a fetch, and the batches they are stored in
    manifest   what a backup holds beside records, as plain values and as JSON
    places     where files are: a folder, or a bucket of an object store
    folder     the files of a backup, and their checksums
    taking     reads a cluster into a backup
    restoring  writes a backup into a cluster
    command    `millstream backup` and `millstream restore`

The first two are pure. A cluster is asked with Kafka's protocol only, so it may be any Kafka.
"""
