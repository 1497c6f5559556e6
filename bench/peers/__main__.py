"""Runs one step (fill or work) of one peer in its own process."""

import json
import os
import sys
from importlib import import_module


def main(name: str, step: str, url: str, count: str) -> None:
    try:
        peer = import_module(f"bench.peers.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("bench", "foliot"):
            raise
        print(json.dumps({"missing": error.name}))
        return
    found = {"settings": peer.SETTINGS, "keeps": peer.KEEPS}
    if step == "fill":
        peer.fill(url, int(count))
    else:
        found["seconds"] = peer.work(url, int(count))
    print(json.dumps(found), flush=True)
    # Skip the worker's cleanup: it is not measured, and some workers take long.
    os._exit(0)


main(*sys.argv[1:])
