"""Which way a value is fetched, after what was learnt."""

from echoic.toolbus.references.routes import Route, Routes

SECOND = 1_000_000_000


def test_a_value_is_fetched_directly_if_nothing_is_known() -> None:
    assert Routes().choose(7, 0) is Route.DIRECT


def test_t14_the_second_transfer_makes_no_failing_try_and_a_later_one_probes_again() -> None:
    routes = Routes()
    routes.failed(7, Route.DIRECT, 5 * SECOND)
    routes.worked(7, Route.RELAYED)
    assert routes.choose(7, 6 * SECOND) is Route.RELAYED
    assert routes.choose(7, 64 * SECOND) is Route.RELAYED
    assert routes.choose(7, 65 * SECOND) is Route.DIRECT


def test_one_transfer_probes_while_the_others_go_on_as_before() -> None:
    routes = Routes(ttl_ns=10)
    routes.failed(7, Route.DIRECT, 0)
    assert [routes.choose(7, 10) for _ in range(3)] == [Route.DIRECT, Route.RELAYED, Route.RELAYED]
    routes.failed(7, Route.DIRECT, 12)
    assert routes.choose(7, 21) is Route.RELAYED
    assert routes.choose(7, 22) is Route.DIRECT
    routes.worked(7, Route.DIRECT)
    assert [routes.choose(7, 23) for _ in range(2)] == [Route.DIRECT, Route.DIRECT]


def test_if_all_else_fails_a_value_goes_through_the_bus() -> None:
    routes = Routes()
    routes.failed(7, Route.DIRECT, 0)
    routes.failed(7, Route.RELAYED, 1)
    assert routes.choose(7, 2) is Route.STREAMED
    routes.failed(7, Route.STREAMED, 3)
    assert routes.choose(7, 4) is Route.STREAMED
    assert routes.statistics().failing == ((7, Route.DIRECT), (7, Route.RELAYED), (7, Route.STREAMED))


def test_who_has_said_that_it_is_passive_is_not_tried() -> None:
    routes = Routes()
    assert routes.choose(7, 0, direct=False) is Route.RELAYED
    assert routes.choose(7, 0, direct=False, relayed=False) is Route.STREAMED
    assert routes.choose(7, 0, relayed=False) is Route.DIRECT


def test_owners_are_told_apart_and_forgotten() -> None:
    routes = Routes(owners_max=2)
    for owner in (1, 2, 1, 3):
        routes.failed(owner, Route.DIRECT, 0)
    assert [routes.choose(owner, 1) for owner in (1, 2, 3, 4)] == [
        Route.RELAYED,
        Route.DIRECT,
        Route.RELAYED,
        Route.DIRECT,
    ]
    routes.forget(1)
    routes.worked(3, Route.DIRECT)
    assert routes.statistics().failing == ()
