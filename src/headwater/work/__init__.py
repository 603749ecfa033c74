"""What runs in the background: loops, periodic jobs, and the same work as Celery tasks."""
