"""A shard, and the lease of its leader."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the schedules: those whose slot mod `of` is `number`."""

    number: int
    of: int

    @property
    def lock_id(self) -> int:
        """Its row in `scheduler_lock_t`; rows are numbered from 1."""
        return self.number + 1


@dataclass(frozen=True, slots=True)
class Lease:
    """Proof that an instance became leader of a shard. Its epoch is never used again."""

    shard: Shard
    epoch: int
    instance_id: str
