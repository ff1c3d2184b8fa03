"""`echoic keys init, issue, rotate, revoke, token`: who is who, by certificates and tokens.

One machine has the authority (`init`), and issues a certificate for every hub (`issue`), which is copied to where the
hub runs. Whoever has none, a browser or a tool, gets a token. Both expire; `rotate` renews, `revoke` ends before time.
"""

import time
from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.cli.screen import json_text, say
from echoic.cli.settings import did_you_mean
from echoic.cli.where import AsJson, Flag
from echoic.errors import ChannelNotFoundError, LocalError
from echoic.trust import ALL_RIGHTS, identity_path
from echoic.trust.authority import LOCAL_HOSTS, Authority
from echoic.trust.certificates import CERTIFICATE_DAYS

__all__ = ["init", "issue", "revoke", "rotate", "token"]

Host = Annotated[tuple[str, ...], Parameter(name="--host", negative=(), show_default=False)]
Right = Annotated[tuple[str, ...], Parameter(name="--right", negative=())]
Channel = Annotated[tuple[str, ...], Parameter(name="--channel", negative=())]


def init(*, as_json: AsJson = False) -> None:
    """Make an authority, which says who is who: once, on one machine.

    Its files are in $ECHOIC_HOME/authority or ~/.config/echoic/authority, and only you can read them. Whoever gets
    authority.key can be anybody; the other machines need authority.pem, revoked.pem, issuers and revoked-tokens.

    Try:
        echoic keys init
        echoic keys issue lab --host 10.0.0.5
        echoic up --listen 10.0.0.5:7400 --names 10.0.0.5:7400 --identity lab

    Args:
        as_json: Print its folder and the key of its tokens as JSON.
    """
    made = Authority.create()
    print(json_text({"folder": str(made.folder), "issuer": made.issuer}) if as_json else made.folder)
    say("this machine says who is who; `echoic keys issue NAME --host HOST` makes a certificate for a hub")


def issue(
    name: str,
    /,
    *,
    host: Host = (),
    days: int = CERTIFICATE_DAYS,
    force: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Issue a certificate: others know a hub by it, and let it in.

    Certificate and key are one file, identities/NAME.pem. To use it on another machine, copy it there into the same
    folder, and what the authority lets everybody know into the folder `authority` beside.

    Try:
        echoic keys issue alice
        echoic keys issue lab --host 10.0.0.5 --host lab.example.org --days 30
        scp ~/.config/echoic/identities/lab.pem 10.0.0.5:.config/echoic/identities/

    Args:
        name: Who it is for. Rights are given to this name.
        host: Where its hub is dialled, a name or a number; may be repeated. [default: this machine alone]
        days: How long it holds.
        force: Replace the one of the same name; `rotate` keeps hosts and days.
        as_json: Print name, file and hosts as JSON.
    """
    authority = Authority.load()
    hosts = host or LOCAL_HOSTS
    path = authority.issue(name, hosts, days, replace=force)
    print(json_text({"name": name, "file": str(path), "hosts": list(hosts), "days": days}) if as_json else path)
    say(f"`{name}` may be dialled at {', '.join(hosts)}; a hub is it with --identity {name}")
    if not host:
        say("that is this machine; name others with --host if other machines dial it")


def rotate(name: str, /, *, as_json: AsJson = False) -> None:
    """Renew a certificate: another key, the same name, hosts and days.

    Hubs that run take it for their next connection, without a restart. The one before holds until it expires; revoke it
    by its number (`echoic keys list`) if its key is known to others. One that has expired is renewed as well, as long
    as its file is here.

    Try:
        echoic keys rotate lab

    Args:
        name: Whose.
        as_json: Print name and file as JSON.
    """
    authority = Authority.load()
    known = authority.renewable()
    if name not in known:
        raise ChannelNotFoundError(f"no certificate of '{name}' is known{did_you_mean(name, known)} (echoic keys list)")
    before = [
        each.id for each in authority.issued() if (each.kind, each.name, each.revoked) == ("certificate", name, 0)
    ]
    path = authority.rotate(name)
    print(json_text({"name": name, "file": str(path)}) if as_json else path)
    say(f"`{name}` has another key; copy {identity_path(name).name} to where it is used")
    if before:
        say(f"the one before holds as well; `echoic keys revoke {before[-1]}` ends it")


def revoke(what: str, /, *, as_json: AsJson = False) -> None:
    """Revoke a certificate or a token before it expires; by a name, all that it has.

    Hubs of this machine refuse it within a second or two; those of other machines when they have the files
    revoked.pem and revoked-tokens. Connections between hubs are closed, and made anew by those who still can.

    Try:
        echoic keys revoke alice
        echoic keys revoke 1732bf977538051800d0607e1043870f7cd0830f

    Args:
        what: A name, the number of a certificate, or the id of a token (`echoic keys list`).
        as_json: Print what was revoked as JSON.
    """
    authority = Authority.load()
    known = {word for each in authority.issued() if not each.revoked for word in (each.name, each.id)}
    if what not in known:
        hint = did_you_mean(what, known)
        raise ChannelNotFoundError(
            f"no certificate or token of the name or id '{what[:80]}' holds{hint} (echoic keys list)"
        )
    found = authority.revoke(what)
    if as_json:
        print(json_text([msgspec.to_builtins(each) for each in found]))
    else:
        for each in found:
            print(f"{each.kind} {each.id} of {each.name}")
    say(f"copy {authority.folder / 'revoked.pem'} and revoked-tokens to the other machines")


def token(
    who: str,
    /,
    *,
    right: Right,
    channel: Channel,
    hours: float = 12.0,
    as_json: AsJson = False,
) -> None:
    """Sign a token for a browser or a tool: who may do what, on which channels, for how long.

    Whoever has the text has the rights. It counts where there are the files `issuers` and `revoked-tokens`, for pages
    (`echoic viewer`) and buses (`echoic bus run`); hubs read no tokens, they want certificates.

    Try:
        echoic keys token alice --right subscribe --channel 'trades'
        echoic keys token panel --right subscribe --right steer --channel 'plant.*' --hours 8

    Args:
        who: Its name, as in a certificate.
        right: publish, subscribe, derive, steer, modulate or admin; may be repeated.
        channel: On which channels, a name or a pattern; may be repeated.
        hours: How long it holds.
        as_json: Print name, id and token as JSON.
    """
    for each in right:
        if each not in ALL_RIGHTS:
            hint = did_you_mean(each, ALL_RIGHTS)
            raise LocalError(f"expected rights of {', '.join(ALL_RIGHTS)}, got '{each[:80]}'{hint}")
    if not 0 < hours <= 24 * 366:
        raise LocalError(f"a token holds for more than 0 and at most {24 * 366} hours, got {hours:g}")
    authority = Authority.load()
    text = authority.issue_token(who, right, channel, max(1, round(hours * 3600)))
    made = authority.issued()[-1]
    print(json_text({"who": who, "id": made.id, "expires": made.expires, "token": text}) if as_json else text)
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(made.expires))
    say(f"holds until {until}; `echoic keys revoke {made.id}` ends it before")
