"""The cold tier: what a prefix of an object store holds of a namespace, and how it is read back."""
