"""Commands that seal, prove, erase, retain and retract."""
