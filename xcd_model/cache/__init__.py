"""Set-associative caches: where a line lies, and which line a miss drives out."""
