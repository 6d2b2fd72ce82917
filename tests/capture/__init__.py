"""Does capture give the trace of the real kernel?"""
