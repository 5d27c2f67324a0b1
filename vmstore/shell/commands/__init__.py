"""The commands of `vmstore`."""
