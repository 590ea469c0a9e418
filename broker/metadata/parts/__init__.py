"""The parts of an image, one file each, with the effect of their records.

Only `replay*` methods change anything. Only `MetadataImage.replay` calls them, and they never
refuse a record, because records were checked when they were built.
"""
