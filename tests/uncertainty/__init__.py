"""What hangs on constants that nobody has published?"""
