"""The pages: rendered on the server, complete without script, made quicker by small modules of our own."""
