"""The outbox: a relay publishes events to a broker, and consumers read them in the database.

`outbox_message_t` is a log. Offsets have no gaps and follow the order of commits (`db/rows/event_rows.py`).
So a reader at an offset has missed nothing before it, and one number is enough to store its progress.

The relay: one is active at a time, by a lease in `relay_t`, which also holds its offset. It reads the next
messages, publishes them, waits until the broker has confirmed all of them, and moves the offset under its
epoch. After a crash before the confirmation or the move, the offset is unchanged. The next relay publishes
the same messages again, in the same order, with the same ids. So every event arrives at least once, the
events of an aggregate arrive in order, and a receiver that stores ids can drop duplicates.

A consumer: the offset of its group and partition moves in the handler's transaction, under a lock of that
row. So the handler's work is committed exactly once, even after a crash.
"""
