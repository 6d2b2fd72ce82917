"""Tables that libraries tune: their rows as launches, what the model says of their orders, and the files rewritten."""
