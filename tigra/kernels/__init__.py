"""Compiled loops for graph, layers, Adam and images, and the decorator that compiles them.

Kernels take plain arrays, fill `out`, allocate no more than a few rows of scratch and check nothing: their callers own
shapes and dtypes. Kernels call only kernels of their own file, because numba's on-disk cache does not notice edits in
other files. They release the GIL, so that worker threads run in parallel. No `fastmath`: it would reorder sums.
"""
