"""Foliot and its peers, each as a module that fills its queue and then works it off in a process of its own.

A module gives:

    SETTINGS    what it is run with, as its documentation recommends for many short jobs
    KEEPS       what is left of a job when it has run
    fill        puts so many jobs that do nothing into a new database, in bulk
    work        runs them all; the seconds from a worker that is about to ask for its first job until the
                last one has run and whatever the library writes of it is written

`python -m bench.peers NAME fill|work URL COUNT` does one of them and prints a line of JSON.
"""
