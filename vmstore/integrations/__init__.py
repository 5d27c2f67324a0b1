"""A store inside what people use already: a folder each, over the public objects, loaded by nobody else."""
