"""Read picture files; resize, rotate and shift images; cache decoded pictures."""

from tigra.images.pictures import decode_image, read_image

__all__ = ["decode_image", "read_image"]
