"""Recipes, methods, runs, and the tables of the paper."""
