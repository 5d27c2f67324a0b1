"""How the `vmql` shell writes answers."""
