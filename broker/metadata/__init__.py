"""The cluster state machine, replicated by the metadata log. Pure.

- `image.py`: what the committed records add up to; `parts/` is what it is made of, `delta.py` what
  changed in it, `snapshot.py` the same as records, `difference.py` two images held side by side.
- `controller.py`: the active controller. A handler in `control/` looks at the image and RETURNS a
  response and records; only `MetadataImage.replay` changes the image, and it never refuses.
- `placement.py`, `features.py`, `topic_names.py`: rules that both sides know.
"""
