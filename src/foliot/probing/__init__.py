"""What an instance shows of itself to machines: its metrics, whether it lives and can do its work.

The API serves these beside everything else. A process without one has a small server for them alone, so that
it need not bring a whole web framework with it.
"""
