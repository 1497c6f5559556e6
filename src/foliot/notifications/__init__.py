"""Notifications: decide which messages are sent, and deliver them.

    decisions.py        pure: from observed runs and rules to incidents and messages
    digest.py           pure: combine many messages of a rule into one
    notifier.py         scan for failures and recoveries, and run the other scans
    lateness.py         scan for executions that wait too long, queue by queue
    scanner.py          scan schedules for runs that did not happen, page by page
    missed_runs.py      pure: which schedules had no success for too long
    expected_since.py   pure: since when a schedule is expected to run
    notifier_term.py    the notifier's memory under one lease
    decision_writer.py  write the decisions, fenced by the lease
    message.py          pure: the body and signature of a webhook or Slack message
    delivery.py         send one request, with secrets inserted, through the address guard
    sender.py           claim due messages, send them, and retry those that failed
    send_order.py       pure: which rules' messages are sent next, while receivers are unreachable

The leader of shard 0 runs the notifier for the schedules of all shards, so each rule is decided once.
Decisions are written in one fenced transaction: messages with a unique key each, incidents, and the read
position. If the leader dies before the commit, nothing is decided. If it dies after the commit, its successor
reads the last seconds again and finds the keys taken.

Senders run where workers run, because external addresses are called from there. If a sender dies after
sending and before writing the result, the message is due again when its lease ends. It is sent again with the
same id.
"""
