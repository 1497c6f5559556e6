"""Optional parts of Foliot: the task function `shell`, enabled with `--tasks`, and workers in Celery."""
