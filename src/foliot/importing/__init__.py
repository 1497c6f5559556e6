"""Schedules of other schedulers, read into definitions of our own.

Each module reads one kind: a crontab, the beat of a Celery application, the tables of django-celery-beat,
the jobs of an APScheduler. All give a `Found`: schedules to make, with notes on what is not the same any
more, and what was left out and why. Nothing is guessed silently, nothing is written, no pickle is read.
"""
