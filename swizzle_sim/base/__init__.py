"""What every room uses: text, files, caches on disk, progress, interruption, the version."""
