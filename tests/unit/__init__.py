"""Is each part right?"""
