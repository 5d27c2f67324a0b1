"""`vmstore demo`, step by step."""
