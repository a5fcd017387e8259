"""Files: atomic writes, the cache folder, digests that are remembered."""
