"""What numba does behind the decorator, done more safely."""
