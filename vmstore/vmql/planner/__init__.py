"""From nodes to one SQL statement."""
