"""MirrorSource: copies records. `source` is the connector, and `source_task` its tasks' loop.

`topic_identity` and `lost_offsets` find what must not be copied silently: another topic under the
same name, and records that the source deleted before they were read.
"""
