"""The program `millstream mirror`: it follows the clusters of mm2.properties, or copies them once.

`mirror_maker_settings` parses the file, `flow_workers` runs a worker for each flow, and `front`
shows them over HTTP, with the `progress` of their tasks; `own_secrets` keeps secrets out of their
topics. `one_copy` copies up to the present end, and `verification` compares the copy; `status`
reads the state of a flow from the clusters, by `whole_topic`.
"""
