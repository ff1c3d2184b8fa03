"""A process that owns a value: `python owner.py SIZE KIND`. Says where it is, and serves it until it is told to end."""

import sys
from pathlib import Path

from echoic.toolbus.references.exchange import Exchange

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from tests.toolbus.references.post import Post, puts_of

    size, kind = int(sys.argv[1]), sys.argv[2]
    content = bytes(range(256)) * (size // 256)
    owner = Post().join(1, Exchange())
    (put,) = puts_of(owner, 2, content if kind == "blob" else content[:128].decode() * (size // 128))
    del content
    print(put.variable, put.endpoints[0], put.token.hex(), flush=True)
    sys.stdin.read()
