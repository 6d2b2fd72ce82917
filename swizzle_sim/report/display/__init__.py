"""Pictures and tables: colours, maps of tiles, and what notebooks show in place of long reprs."""
