"""Operating system calls: files, processes, descriptors."""
