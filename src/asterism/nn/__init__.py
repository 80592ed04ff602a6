"""Torch modules; they know nothing of estimators or files."""
