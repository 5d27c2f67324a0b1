"""The one choice of what a prompt holds: candidates in classes, levels before omission, never over the budget."""
