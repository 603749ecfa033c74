"""Who may sign in: tokens, sessions and login links. And secrets, encrypted."""
