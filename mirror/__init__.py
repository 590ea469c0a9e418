"""The mirror copies one cluster into another, with MirrorMaker 2's names, settings and formats.

These modules decide without a client or a clock: `flow` (which topics are mirrored, under which
names), `topics` (what to create and change in the target), `metrics`, `offsets.sync_queue` (which
offset syncs are written), `offsets.sync_store` (translates a source offset into the target),
`offsets.checkpoints` (which group offsets are written), `dedicated.mirror_maker_settings` (parses
mm2.properties). The connectors act on their decisions: `copying.source`,
`offsets.checkpoint_connector` and `heartbeat`, by a `schedule` and through a `cluster`;
`source_offsets` are what they keep. `settings`, `definitions` and `filters` are their
configuration.
"""
