"""Import schedules of other schedulers as Foliot definitions.

Each module reads one source: a crontab, the beat schedule of a Celery application, the tables of
django-celery-beat, or the jobs of APScheduler. All return an `ImportResult`: schedules to create, with notes
on differences, and what was left out and why. They guess nothing silently, write nothing, and read no
pickles.
"""
