"""Sites that are read page by page: their lists of articles, and the articles."""
