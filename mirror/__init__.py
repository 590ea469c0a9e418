"""The mirror: one cluster followed by another, by MirrorMaker 2's names, settings and formats.

Decided without a client or a clock: `flow` (what is mirrored, and what it is called), `topics`
(what has to be made and changed in the target), `sync_queue` (which offsets are written down),
`offset_sync_store` (what a source's offset is in the target), `checkpoints` (how far groups are),
`mirror_maker_settings` (what mm2.properties means). The connectors do what those say.
"""

from common.http.certificates import read_when_needed

read_when_needed()
