"""What keeps a store in order: verify, doctor, backup, archive, upgrade."""
