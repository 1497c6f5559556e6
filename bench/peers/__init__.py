"""Foliot and its peers: one module per library, with steps that fill its queue and run all jobs.

Each module has:

    SETTINGS    the settings, as the library's documentation recommends for many short jobs
    KEEPS       what the library stores of a job after it has run
    fill        inserts a number of jobs that do nothing into a new database, in bulk
    work        runs all jobs and returns the seconds, from before the worker fetches its first job until the
                last job has run and the library has written its result

`python -m bench.peers NAME fill|work URL COUNT` runs one step in its own process and prints a line of JSON.
"""
