"""A firewall that loses packets without a word, in a network namespace of a test."""

import os
import shutil
import subprocess

__all__ = ["Firewall", "why_no_firewall"]


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=20)


def why_no_firewall() -> str:
    """Return why there can be none here; nothing if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("ip", "nft") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    name = f"echoic-{os.getpid()}-w"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return f"no network namespaces: {made.stderr.strip()}" if made.returncode else ""


class Firewall:
    """What a namespace loses: what comes in, what goes out, what it forwards."""

    def __init__(self, namespace: str, *, loopback: str = "lo") -> None:
        self._namespace, self._loopback = namespace, loopback
        self._nft("add", "table", "inet", "echoic")

    def drop(self, *hooks: str) -> None:
        """Lose all packets of some hooks, and no others."""
        self.pass_all()
        for hook in hooks:
            self._nft("add", "chain", "inet", "echoic", hook, f"{{ type filter hook {hook} priority 0 ; }}")
            side = "oifname" if hook == "output" else "iifname"
            self._nft("add", "rule", "inet", "echoic", hook, side, "!=", self._loopback, "drop")

    def pass_all(self) -> None:
        """Lose nothing."""
        self._nft("delete", "table", "inet", "echoic")
        self._nft("add", "table", "inet", "echoic")

    def _nft(self, *words: str) -> None:
        run("ip", "netns", "exec", self._namespace, "nft", *words)
