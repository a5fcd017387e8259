"""Files: atomic writes, the cache folder, and cached digests."""
