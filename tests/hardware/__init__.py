"""Does what comes from hardware come home as it was, and does nothing else pass for it?"""
