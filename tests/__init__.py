"""Tests; one folder a question (see the house style, rule 8)."""
