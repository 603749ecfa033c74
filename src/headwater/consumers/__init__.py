"""Code that gives an event its effect, once. Each consumer is a declaration and a function."""
