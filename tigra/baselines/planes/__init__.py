"""Layers on planes of pixels: ConvNet and spatial transformer."""
