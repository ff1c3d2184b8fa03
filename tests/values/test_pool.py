"""The constant pool: one object for each value, for as long as somebody uses it, or a little longer with a budget."""

import gc
import threading

from hypothesis import given
from hypothesis import strategies as st

from echoic.values import ConstantPool, Variable


def test_a_value_is_found_while_somebody_uses_it_and_no_longer() -> None:
    pool: ConstantPool[str] = ConstantPool()
    variable = Variable(("tool", 17), "value", 5)
    assert pool.add(variable) is variable
    assert pool.find(("tool", 17)) is variable
    assert pool.find(("tool", 18)) is None
    del variable
    gc.collect()
    assert pool.find(("tool", 17)) is None
    assert pool.statistics().values == 0


def test_the_first_value_under_a_key_stays() -> None:
    pool: ConstantPool[list[int]] = ConstantPool()
    first = pool.add(Variable("key", [1], 8))
    assert pool.add(Variable("key", [1], 8)) is first


def test_empty_values_are_not_kept_by_a_weak_pool() -> None:
    pool: ConstantPool[str] = ConstantPool()
    pool.add(Variable("empty", "", 0))
    gc.collect()
    assert pool.find("empty") is None


def test_a_soft_pool_keeps_what_was_used_last() -> None:
    pool: ConstantPool[str] = ConstantPool(budget_bytes=3000)
    for name in "abc":
        pool.add(Variable(name, name, 1000))
    assert pool.find("a") is not None
    pool.add(Variable("d", "d", 1000))
    gc.collect()
    assert [name for name in "abcd" if pool.find(name)] == ["a", "c", "d"]
    assert pool.statistics().kept_bytes == 3000


def test_a_value_that_left_a_soft_pool_is_found_while_it_is_used() -> None:
    pool: ConstantPool[str] = ConstantPool(budget_bytes=1000)
    variable = pool.add(Variable("used", "value", 1000))
    pool.add(Variable("other", "value", 1000))
    assert pool.find("used") is variable


def test_a_value_larger_than_the_budget_sends_nobody_away() -> None:
    pool: ConstantPool[str] = ConstantPool(budget_bytes=1000)
    pool.add(Variable("small", "value", 500))
    pool.add(Variable("large", "value", 1001))
    gc.collect()
    assert pool.find("small") is not None
    assert pool.find("large") is None


def test_small_values_are_few_as_well() -> None:
    pool: ConstantPool[int] = ConstantPool(budget_bytes=10_000)
    for number in range(1000):
        pool.add(Variable(number, number, 0))
    gc.collect()
    assert pool.statistics().values == pool.statistics().kept < 50


def test_a_forgotten_value_is_not_found_although_it_is_used() -> None:
    for budget_bytes in (0, 10_000):
        pool: ConstantPool[str] = ConstantPool(budget_bytes)
        variable = pool.add(Variable("key", "value", 5000))
        pool.forget("key")
        pool.forget("key")
        assert pool.find("key") is None
        assert pool.statistics().kept_bytes == 0
        assert pool.add(Variable("key", "another", 5000)) is not variable


def test_clear_forgets_all() -> None:
    pool: ConstantPool[str] = ConstantPool(budget_bytes=10_000)
    variable = pool.add(Variable("used", "value", 10))
    pool.add(Variable("kept", "value", 10))
    pool.clear()
    assert pool.find(variable.key) is pool.find("kept") is None
    assert pool.statistics().kept == pool.statistics().kept_bytes == 0


def test_the_statistics_tell_what_was_not_fetched() -> None:
    pool: ConstantPool[str] = ConstantPool()
    variable = pool.add(Variable("key", "value", 5))
    for key in ("key", "key", "other"):
        pool.find(key)
    statistics = pool.statistics()
    assert (statistics.hits, statistics.misses, statistics.hit_bytes) == (2, 1, 2 * variable.size)


@given(st.lists(st.tuples(st.sampled_from(["find", "add", "forget"]), st.integers(0, 5), st.integers(0, 2000))))
def test_a_soft_pool_is_a_table_of_what_was_used_last(steps: list[tuple[str, int, int]]) -> None:
    pool: ConstantPool[int] = ConstantPool(budget_bytes=3000)
    model: dict[int, int] = {}  # key -> charge, the least recently used first
    for act, key, size in steps:
        if act == "forget":
            pool.forget(key)
            model.pop(key, None)
            continue
        found = pool.find(key) if act == "find" else pool.add(Variable(key, key, size))
        assert (found is not None) == (act == "add" or key in model)
        if found is not None:
            model[key] = model.pop(key, max(size, 256))
            while sum(model.values()) > 3000:
                del model[next(iter(model))]
        del found
        assert pool.statistics().kept == pool.statistics().values == len(model)
        assert pool.statistics().kept_bytes == sum(model.values())


def test_threads_that_bring_the_same_value_get_the_same_one() -> None:
    pool: ConstantPool[object] = ConstantPool()
    together = threading.Barrier(8)
    got: list[list[Variable[object]]] = [[] for _ in range(8)]

    def bring(mine: list[Variable[object]]) -> None:
        together.wait()
        mine.extend(pool.find(key) or pool.add(Variable(key, object(), 1)) for key in range(500))

    threads = [threading.Thread(target=bring, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(set(map(id, same))) == 1 for same in zip(*got, strict=True))
