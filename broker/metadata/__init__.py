"""The state of the cluster, replicated by the metadata log, without any IO.

- `image.py` is the state that follows from the committed records. `parts/` has its parts,
  `delta.py` the changes since a point in time, `snapshot.py` the image as records, and
  `difference.py` the difference of two images.
- `controller.py` is the active controller. A handler in `control/` reads the image and RETURNS a
  response and records; only `MetadataImage.replay` changes the image, and it never refuses a
  record.
- `placement.py`, `features.py`, `topic_names.py` and `share_reset.py` are rules for controllers and
  brokers.
"""
