"""Compiled loops for graph, layers, Adam and images, and the decorator that compiles them.

Kernels take plain arrays, fill `out` and allocate at most a few rows of scratch memory. They check nothing; callers
are responsible for shapes and dtypes. A kernel may call kernels of other files: the decorator sees to it that numba's
on-disk cache notices changes there. They release the GIL, so worker threads run in parallel. `fastmath` is off,
because it would reorder sums.
"""
