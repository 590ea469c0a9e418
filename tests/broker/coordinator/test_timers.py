"""Deadlines: moved, cancelled, and cheap to move."""

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.timers import CORRECTIONS_AT_ONCE, Timers


def test_deadlines_come_up_in_order_and_ties_in_the_order_they_were_set():
    timers = Timers()
    for name, deadline_ms in [("late", 9), ("b", 5), ("a", 5), ("early", 1)]:
        timers.schedule(name, deadline_ms)
    assert timers.next_deadline_ms() == 1
    assert list(timers.pop_due(8)) == ["early", "b", "a"]
    assert list(timers.pop_due(8)) == []
    assert timers.next_deadline_ms() == 9


def test_a_cancelled_deadline_never_comes_up():
    timers = Timers()
    timers.schedule("a", 5)
    timers.cancel("a")
    timers.cancel("never set")
    assert timers.next_deadline_ms() is None
    assert list(timers.pop_due(100)) == []


def test_moving_a_deadline_later_again_and_again_keeps_one_heap_entry():
    timers = Timers()
    for deadline_ms in range(10_000):
        timers.schedule("session", deadline_ms)
    assert len(timers._heap) == 1
    assert timers.next_deadline_ms() == 9_999


def test_of_very_many_that_were_moved_only_some_are_corrected_at_once():
    timers, count = Timers(), 3 * CORRECTIONS_AT_ONCE
    for name in range(count):
        timers.schedule(name, 1)
        timers.schedule(name, 9)
    assert timers.next_deadline_ms() == 1
    assert list(timers.pop_due(5)) == []
    assert sum(entry_ms == 1 for entry_ms, _, _ in timers._heap) == CORRECTIONS_AT_ONCE
    assert list(timers.pop_due(5)) == []
    assert timers.next_deadline_ms() == 9
    assert list(timers.pop_due(9)) == list(range(count))


names = st.sampled_from("abc")
steps = st.one_of(
    st.tuples(st.just("schedule"), names, st.integers(0, 30)),
    st.tuples(st.just("cancel"), names, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.integers(0, 30)),
)


@given(st.lists(steps, max_size=40))
def test_timers_agree_with_a_plain_dictionary(history):
    timers, model = Timers(), {}
    for action, name, time_ms in history:
        if action == "schedule":
            timers.schedule(name, time_ms)
            model[name] = time_ms
        elif action == "cancel":
            timers.cancel(name)
            model.pop(name, None)
        else:
            due = {each for each, deadline_ms in model.items() if deadline_ms <= time_ms}
            popped = list(timers.pop_due(time_ms))
            assert [model[each] for each in popped] == sorted(model[each] for each in due)
            assert set(popped) == due
            model = {each: model[each] for each in model.keys() - due}
        assert timers.next_deadline_ms() == min(model.values(), default=None)
        assert len(timers) == len(model)


def test_what_is_moved_while_another_is_acted_on_is_not_due_any_more():
    timers = Timers()
    timers.schedule("first", 1)
    timers.schedule("second", 1)
    acted_on = []
    for name in timers.pop_due(5):
        acted_on.append(name)
        timers.schedule("second", 10)
    assert acted_on == ["first"]
    assert timers.next_deadline_ms() == 10
