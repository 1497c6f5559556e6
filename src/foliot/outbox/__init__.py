"""Events leave the database: a relay ships them to a broker, consumers read them where they are.

`outbox_message_t` is a log. Offsets have no gaps and are in the order of commits (`store.events`), so whoever
has read up to one has missed nothing before it, and "how far" is one number.

The relay: one is active at a time, by a lease in `relay_t`, which also holds how far it has come. It reads
the next messages, publishes them, waits until the broker has confirmed every one, and moves the offset, under
its epoch. A crash before the confirmation or before the move leaves the offset: the next relay publishes them
again, in the same order, with the same ids. So every event arrives at least once, those of an aggregate in
their order, and one who keeps ids sees each once.

A consumer: the offset of its group and partition moves in the transaction in which the handler does its work,
under a lock of that row; so the work is done once, whoever crashes.
"""
