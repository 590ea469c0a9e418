"""Records as rows of a page: decoded, hidden, merged and searched. Nothing here does IO.

`batches` makes single records of record batches, `decoding` texts of their bytes, `rows` has what
is shown of a record. `masking` hides parts of it, `filters` is what a search looks for,
`merging` puts the partitions of a topic in the order of time, and `skeletons` makes values to be
filled in.
"""
