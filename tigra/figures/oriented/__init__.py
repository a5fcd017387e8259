"""Figures of oriented networks: what they make of images and of their mirror images."""
