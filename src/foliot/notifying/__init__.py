"""Telling people: which messages there are to be, and getting them to where they are to go.

    deciding.py    pure: from what was seen, and the rules, to incidents and messages
    gathering.py   pure: many messages at once become one
    notifier.py    looks what has failed or recovered, and has the rest looked at
    lateness.py    looks what waits for too long, queue by queue
    sweeping.py    goes through schedules for what did not happen, page by page
    patience.py    pure: which of them were silent for too long
    beginning.py   pure: from when on a schedule is to run
    term.py        what a notifier knows under one lease
    writing.py     writes down what was decided, under the lease
    message.py     pure: a message as a webhook or Slack takes it, and its signature
    sending.py     one request, under the address guard, with its secrets in place
    courier.py     takes messages that are due, sends them, and tries again what did not arrive
    turns.py       pure: whose messages are sent next, while receivers are away

The notifier is the leader's of shard 0, whatever shard a schedule is in, so that a rule is decided once. What
it decides is one fenced transaction: messages with a unique key each, incidents, and how far it has read. A
leader that dies before it has decided nothing; one that dies behind it has decided for all, and its successor
reads the last seconds again and finds the keys taken.

Couriers run where workers do: outside addresses are called from there. One that dies after sending and before
writing so leaves a message that is due again when its lease ends: it is sent once more, under the same id.
"""
