"""Wishes for a run that goes on."""

from __future__ import annotations

import threading

import headway as hw


def test_wishes_come_once_and_in_their_order() -> None:
    control = hw.Control()
    assert control.wanted() == []
    control.specify({"objectives": "latency"})
    control.specify({"objectives": "queue"})
    assert control.wanted() == [{"objectives": "latency"}, {"objectives": "queue"}]
    assert control.wanted() == []


def test_any_thread_may_wish() -> None:
    control = hw.Control()

    def wish(who: str) -> None:
        for at in range(100):
            control.specify({who: at})

    threads = [threading.Thread(target=wish, args=(who,)) for who in "abcd"]
    for thread in threads:
        thread.start()
    found = []
    while any(thread.is_alive() for thread in threads):
        found += control.wanted()
    for thread in threads:
        thread.join(20)
    found += control.wanted()
    for who in "abcd":
        assert [one[who] for one in found if who in one] == list(range(100)), "none is lost, each thread's in order"
