"""Task functions that come with Foliot. None is there by itself: a worker names them by `--tasks`."""
