"""Memory as a folder of Markdown files, out and in."""
