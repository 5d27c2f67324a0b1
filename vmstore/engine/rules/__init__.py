"""Rules a mutation must satisfy before it is written."""
