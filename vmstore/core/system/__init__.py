"""What vmstore asks of the operating system: files, processes, descriptors."""
