"""Spoilt copies of recorded runs: none of them is a run of the specification."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Run = list[dict[str, Any]]


def spoil(run: Run) -> list[Run]:
    """Return copies of a run, each with one thing in it that must not be."""
    moves = [i for i, e in enumerate(run) if e["kind"] == "pointer" and e["pointer"]["entries"]]
    if not moves:
        return []
    return [*_spoil_pointer(run, moves), *_spoil_rows(run, moves), *_spoil_readings(run)]


def _spoil_pointer(run: Run, moves: list[int]) -> Iterator[Run]:
    """Yield it with another instant, with a snapshot lost, and with one retired that is named."""
    shifted, lost, retired = deepcopy(run), deepcopy(run), deepcopy(run)
    shifted[moves[0]]["pointer"]["entries"][-1]["at"] += 1000
    number = _newest(run[moves[-1]])
    lost.append({**run[-1], "kind": "remove", "number": number})
    retired[moves[-1]]["pointer"]["retired"]["#set"].append(number)
    yield from (shifted, lost, retired)


def _spoil_rows(run: Run, moves: list[int]) -> Iterator[Run]:
    """Yield it with a row that is withdrawn in its place, and with changes by another command."""
    number = _newest(run[moves[-1]])
    first = next(i for i in moves if _newest(run[i]) == number)
    at = max(i for i in range(first) if (run[i]["kind"], run[i]["number"]) == ("manifest", number))
    bad = deepcopy(run)
    rows = [row for _, row in bad[at]["manifest"]["rows"]["#map"] if row["place"] > 0]
    rows[0]["gone"] = not rows[0]["gone"]
    yield bad
    known: dict[int, list[Any]] = {0: []}
    for at, event in enumerate(run):
        if event["kind"] == "manifest":
            known[event["number"]] = [(i, r["gone"]) for i, r in _rows(event)]
        elif at in moves and at > moves[0] and event["change"] in ("withdraw", "reinstate"):
            before, after = known[_newest(run[moves[moves.index(at) - 1]])], known[_newest(event)]
            if before != after:
                bad = deepcopy(run)
                bad[at]["change"] = "publish"
                yield bad


def _spoil_readings(run: Run) -> Iterator[Run]:
    """Yield it with a reading that is kept for too long, or whose time was taken too late."""
    looked: dict[int, int] = {}
    for at, event in enumerate(run):
        bad = deepcopy(run)
        if event["kind"] == "look":
            looked[event["reader"]] = event["clock"]
        elif event["kind"] == "read" and event["reader"] in looked:
            late = looked.pop(event["reader"]) + 1 - event["reading"]["time"]
            bad[at]["reading"]["time"] += late
            bad[at]["date"] += late
            yield bad
        elif event["kind"] == "read":
            bad[at]["clock"] = event["reading"]["time"] + event["keep"]
            yield bad


def _rows(event: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return [(i, row) for i, row in event["manifest"]["rows"]["#map"] if row["place"] > 0]


def _newest(event: dict[str, Any]) -> int:
    return int(event["pointer"]["entries"][-1]["number"])
