"""One source, one visit: joins what to ask, the asking, the reading and the writing."""
