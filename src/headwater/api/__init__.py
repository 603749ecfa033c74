"""The HTTP API. Each route reads the request, calls a use case of `app`, and answers with its JSON shape."""
