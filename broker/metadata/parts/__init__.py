"""What an image is made of: one file for each kind of thing, and what its records do to it.

Only `replay*` methods change anything; they are called by `MetadataImage.replay` alone and never
refuse, because a record was checked when it was made.
"""
