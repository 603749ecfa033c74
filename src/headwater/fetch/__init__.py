"""From a request to bytes: the only code that opens a connection to the outside.

Nothing is imported here, because the parse workers import `fetch.body` and must not pay for libcurl.
"""
