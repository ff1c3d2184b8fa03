"""Edge: runs code that others have written. Which part of a handler goes to the source, how, and where may it run?"""
