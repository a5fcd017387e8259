"""Prediction with oriented networks: several layers in one call."""
