"""Reading feeds: bytes in, drafts of posts out, and the rules that make posts of them."""
