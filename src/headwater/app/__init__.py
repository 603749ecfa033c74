"""The use cases: one function for each thing that a person or a program can ask for.

A function that takes a connection runs in one transaction of its caller: `await db.write(webhooks.add, ...)`. One that
takes the database runs several. The time and everything else they need are arguments, and what goes wrong is an error
of `errors.py`. They know nothing of HTTP, of the command line or of pages: `api`, `web` and `cli` translate.
"""
