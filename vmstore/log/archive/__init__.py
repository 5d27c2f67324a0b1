"""Archives: cells of sessions at rest, moved out of the log into files of their own."""
