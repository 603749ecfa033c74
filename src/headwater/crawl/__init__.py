"""Crawling: visits to sources, what they record, and what watches over them."""
