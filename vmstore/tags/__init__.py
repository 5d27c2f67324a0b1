"""What a talk is about: tags found by words, names that mean the same, where segments end. Pure: texts in, tags out."""
