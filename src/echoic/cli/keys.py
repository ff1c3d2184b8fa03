"""`echoic keys new, show, trust, distrust, list`: whose code runs where.

A modulator is signed by whoever ships it, and runs in the sources of whoever has listed that key. So there are two
sides, and each has its verbs: `new` and `show` for authors, `trust` and `distrust` for operators; `list` shows both,
and what `echoic.cli.authority` has issued.
"""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError
from echoic.trust import SigningKey, TrustedKey, authority_folder, home, key_path, read_trust, trust_path, write_trust
from echoic.trust.ledger import Issued

__all__ = ["distrust", "list_keys", "new", "show", "trust"]

KeyName = Annotated[str, Parameter(show_default=True)]


def new(*, name: KeyName = "default", force: Flag = False, as_json: AsJson = False) -> None:
    """Make a signing key, and print its public half.

    The private half is written to NAME.key in $ECHOIC_HOME or ~/.config/echoic, and only you can read it. Give the
    public half to those in whose programs your modulators are to run.

    Try:
        echoic keys new
        echoic keys new --name lab

    Args:
        name: What you call the key.
        force: Replace a key of the same name, which is then lost.
        as_json: Print the key and its file as JSON.
    """
    key, path = SigningKey.generate(), key_path(name)
    key.save(path, force=force)
    print(json_text({"name": name, "key": key.public, "file": str(path)}) if as_json else key.public)
    say(f"the private key is in {path}; whoever is to run your modulators types: echoic keys trust {key.public}")


def show(*, name: KeyName = "default", as_json: AsJson = False) -> None:
    """Print the public half of a signing key of yours.

    Try:
        echoic keys show
        echoic keys show --name lab

    Args:
        name: What you call the key.
        as_json: Print the key and its file as JSON.
    """
    path = key_path(name)
    key = SigningKey.load(path)
    print(json_text({"name": name, "key": key.public, "file": str(path)}) if as_json else key.public)


def list_keys(*, as_json: AsJson = False) -> None:
    """List the keys of yours, those whose modulators run here, and what your authority has issued.

    Your own sign what you ship. Of the others, `process` means that their modulators run inside your hubs and may do
    what these may, `sandbox` that they run in a confined process beside them. Certificates and tokens have a number or
    id, by which they can be revoked, and two times between which they hold. What was issued last stands last.

    Try:
        echoic keys list
        echoic keys list --json

    Args:
        as_json: Print a list of objects as JSON.
    """
    rows = [(name, "own", key.public) for name, key in _own_keys()]
    rows += [(key.name, "sandbox" if key.sandbox else "process", key.public) for key in read_trust()]
    issued = _issued()
    if as_json:
        listed = [{"name": name, "use": use, "key": public} for name, use, public in rows]
        print(json_text(listed + [_as_object(each) for each in issued]))
    else:
        told = [(each.name, f"{'revoked ' if each.revoked else ''}{each.kind}", _as_line(each)) for each in issued]
        print_table(["NAME", "USE", "KEY"], rows + told)
    if not rows and not issued:
        say(
            f"no keys in {home()}: `echoic keys init` makes an authority for certificates, `echoic keys new` a key "
            "that signs modulators, `echoic keys trust` lists somebody's"
        )


def trust(public: str, /, *, name: str = "", sandbox: Flag = False) -> None:
    """List a key: modulators that it has signed run in your hubs that ask for the list.

    A key that is listed already is listed anew. A program asks for the list with

        Hub(policy=Policy(trusted_keys=trusted_keys(), sandboxed_keys=sandboxed_keys()))

    Code of a key that is trusted without --sandbox can do what your program can do. List those you would give your
    password to.

    Try:
        echoic keys trust ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q --name alice
        echoic keys trust '*' --name everybody --sandbox

    Args:
        public: The public half of the key, or * for every key.
        name: Whose it is.
        sandbox: Run its modulators only in a confined process.
    """
    entry = TrustedKey(public, name, sandbox)
    kept = [key for key in read_trust() if key.public != public]
    taken = [key.public for key in kept if name and key.name == name]
    if taken:
        raise LocalError(f"`{name}` is the name of {taken[0]} already; choose another, or distrust that one first")
    write_trust([*kept, entry])
    place = "in a confined process" if sandbox else "in process, with all that your program may do"
    say(f"modulators of {name or public} run {place} - in {trust_path()}")


def distrust(key: str, /) -> None:
    """Take a key from the list.

    What runs already goes on until its hub ends.

    Try:
        echoic keys distrust alice

    Args:
        key: The public half of the key, or the name it was listed with.
    """
    listed = read_trust()
    kept = [each for each in listed if key not in (each.public, each.name)]
    if len(kept) == len(listed):
        raise LocalError(f"no key and no name `{key}` is listed in {trust_path()}; `echoic keys list` shows them")
    write_trust(kept)
    say(f"{key} is not listed any more - in {trust_path()}")


def _issued() -> tuple[Issued, ...]:
    """Return what the authority of this machine has issued; nothing where there is none."""
    if not authority_folder().joinpath("authority.key").exists():
        return ()
    from echoic.trust.authority import Authority

    try:
        return Authority.load().issued()
    except LocalError as error:
        say(f"not listed: {error}")
        return ()


def _as_object(issued: Issued) -> dict[str, object]:
    use = f"{'revoked ' if issued.revoked else ''}{issued.kind}"
    kind = "hosts" if issued.kind == "certificate" else "channels"
    return {
        "name": issued.name,
        "use": use,
        "id": issued.id,
        kind: list(issued.scope),
        "begins": issued.begins,
        "expires": issued.expires,
    }


def _as_line(issued: Issued) -> str:
    begins, until = (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each)) for each in (issued.begins, issued.expires)
    )
    return f"{issued.id}  {','.join(issued.scope)}  from {begins}  until {until}"


def _own_keys() -> list[tuple[str, SigningKey]]:
    """Return the signing keys in their folder; one that cannot be used is reported and left out."""
    found = []
    for path in sorted(Path(home()).glob("*.key")):
        try:
            found.append((path.stem, SigningKey.load(path)))
        except LocalError as error:
            say(f"not listed: {error}")
    return found
