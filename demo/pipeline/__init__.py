"""`millstream demo`: runs the whole order pipeline on this machine and sends orders through it.

`command` is the command line; `scenario` is the run, step by step. The programs are child
processes. The demo reaches them only over the network: REST, Kafka, the schema registry. Orders
come from files (`invoices`) or are generated (`synthetic`). `sending` posts them, `observing` reads
their results from the topics, and `report` counts the results. `installing` gets the packages of
Spark and the streams while the pipeline runs.
"""
