"""Fetching: from a request to bytes. The only code that opens a connection to the outside.

Nothing is imported here, because parser processes import `fetch.body` and should not load libcurl.
"""
