"""Data sets in .npz files of arrays."""
