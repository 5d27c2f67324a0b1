"""Rules over an agent's calls: failures that repeat, sequences that succeed, pages that tools read. Pure: no model."""
