"""What networks minimise: functions from tensors to a scalar."""
