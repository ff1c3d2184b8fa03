"""The reference parser of AsyncAPI, installed once into the environment, with the hashes of the lock file."""

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "asyncapi"
FILES = ("package.json", "package-lock.json", ".npmrc")
PATIENCE_SECONDS = 300.0


def parser_folder() -> Path:
    """Return the folder that has the parser; npm puts it there when it is the first time, or the lock has changed."""
    folder = Path(sys.prefix) / "asyncapi-parser"
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (HERE / "package-lock.json").read_bytes()
        stamp = folder / ".installed"
        if not stamp.exists() or stamp.read_bytes() != wanted:
            for name in FILES:
                shutil.copy(HERE / name, folder / name)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
            stamp.write_bytes(wanted)
        shutil.copy(HERE / "validate.mjs", folder / "validate.mjs")
    return folder


def parsed(documents: Sequence[dict[str, object]]) -> list[dict[str, Any]]:
    """Return what the parser says of each document: whether it is understood, its channels, and what was found."""
    folder = parser_folder()
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    done = subprocess.run(
        ["node", "validate.mjs"],
        cwd=folder,
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
