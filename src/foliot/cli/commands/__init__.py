"""The commands of `foliot`, one file per group."""
