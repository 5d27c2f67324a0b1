"""Commands that bring sessions in and out."""
