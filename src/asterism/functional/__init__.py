"""Pure tensor mathematics: no modules, no state, no files."""
