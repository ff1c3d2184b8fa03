"""Trial 19, where time passes: the cells of certificates that expire while connections stand find who never looks."""

from pathlib import Path

import pytest

from echoic.hub import vigil
from echoic.replicas import http_server
from echoic.testing.trials.tls_expiry import STANDING, expiry_problems
from echoic.testing.trials.tls_papers import Papers

pytestmark = pytest.mark.system


def test_who_never_looks_whether_a_certificate_has_expired_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "end_expired", lambda *_: None)
    monkeypatch.setattr(http_server._Tls, "holds", lambda *_: True)  # noqa: SLF001 - the mistake that is planted
    found = dict(expiry_problems(Papers(tmp_path)))
    assert found == {
        f"expires at standing {name}": "it stands 5 s after its certificate has expired" for name in STANDING
    }
