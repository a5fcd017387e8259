"""What numba does behind the decorator, done more safely; and code that is written for it in vectors of registers."""
