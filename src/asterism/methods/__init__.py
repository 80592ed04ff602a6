"""Estimators, and the table that lists them."""
