"""Files in and out: weights."""
