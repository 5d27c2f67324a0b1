"""Calls as spans of OpenTelemetry, by the GenAI conventions: what the importer of traces reads again."""
