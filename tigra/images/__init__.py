"""Pixels: picture files as arrays, images resized, turned and shifted, and the store of decoded pictures."""

from tigra.images.pictures import decode_image, read_image

__all__ = ["decode_image", "read_image"]
