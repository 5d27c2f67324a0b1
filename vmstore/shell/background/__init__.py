"""Commands that run in the background, kept running by what does that on a machine: systemd, or launchd."""
