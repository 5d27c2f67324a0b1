"""Work divided into units that many processes do at once."""
