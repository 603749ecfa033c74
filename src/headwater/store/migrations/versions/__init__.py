"""One module for each revision, named after it. Databases exist at every revision, so none is ever changed."""
