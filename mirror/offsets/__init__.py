"""How offsets of the source become offsets of the target.

`sync_queue` decides which offset syncs are written, and `sync_store` translates with them;
`checkpoints` decides which group offsets are written, and the tasks of `checkpoint_connector` do it
(`checkpoint_task`). `followed_topic` reads a topic of the mirror's own.
"""
