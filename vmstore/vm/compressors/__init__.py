"""Shorter forms of pages: a plug-in for each modality and level, made without a model."""
