"""Celery's application with a broker that takes a worker for dead after a second, and delivers its task again."""

from headwater.work.celery_app import app

app.conf.broker_transport_options = {
    **app.conf.broker_transport_options,
    "visibility_timeout": 1,
    "unacked_restore_throttle": 1,  # look for such tasks every ten seconds, not every hundred
}
