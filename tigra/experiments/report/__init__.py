"""What a test says about a classifier: numbers by class, remarks in words, and a page to look at."""
