"""Layers that work on planes of pixels: ConvNet and the spatial transformer."""
