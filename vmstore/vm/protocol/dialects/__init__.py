"""The request formats of the providers."""
