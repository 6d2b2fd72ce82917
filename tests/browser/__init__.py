"""Do the pages work in a real browser?"""
