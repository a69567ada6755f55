"""The runner of ``sdk/vectors``: a transport and clocks of the test's own, no sockets."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

from seatkeeper._core.clocks import MILLISECOND, NEVER, SECOND, Now
from seatkeeper._core.door import DeviceDoor, LicenseDoor
from seatkeeper._core.events import (
    Action,
    Answered,
    Cancel,
    Event,
    Failed,
    Finish,
    RefreshToken,
    Send,
    SessionEnd,
    Signal,
    StreamOver,
    Tell,
)
from seatkeeper._core.machine import Machine
from seatkeeper._core.plan import FOREVER, Plan
from seatkeeper._core.request import Failure, Request, Response

FOLDER = Path(__file__).resolve().parents[2] / "vectors"
IDS = {"$S": "0198a0aa-0000-7000-8000-000000000001", "$T": "0198a0aa-0000-7000-8000-000000000002"}
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
FAILURES = {
    "refused": Failure.REFUSED,
    "reset-before-send": Failure.RESET_BEFORE_SEND,
    "reset-after-send": Failure.RESET_AFTER_SEND,
    "timeout": Failure.TIMEOUT,
    "truncated": Failure.TRUNCATED,
    "garbage": Failure.GARBAGE,
    "no-token": Failure.NO_TOKEN,
}
CALLS = {"release": Signal.RELEASE, "abandon": Signal.ABANDON, "acquire": Signal.ACQUIRE, "wake": Signal.WAKE}
TOKENS = {"fresh": Signal.TOKEN_READY, "none": Signal.TOKEN_FAILED}
#: More steps at one instant are a livelock.
STEPS_AT_ONCE_MAX = 100
#: More steps of one holder than any fleet needs.
FLEET_STEPS_MAX = 10_000
#: A round trip to the server of a fleet.
ROUND_TRIP = 5 * MILLISECOND
#: Load is counted in buckets of this.
BUCKET = 100 * MILLISECOND


def files() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields the name and the vectors of each file."""
    for path in sorted(FOLDER.glob("*.json")):
        yield path.name, json.loads(path.read_text())


def span(text: str) -> int:
    """Reads ``250ms``, ``10s``, ``5m``, ``3h`` or ``400d``."""
    match = re.fullmatch(r"([0-9.]+)(ms|s|m|h|d)", text)
    assert match, f"no span: {text}"
    return round(float(match[1]) * UNITS[match[2]] * 1_000) * MILLISECOND


def with_ids(text: str) -> str:
    """Puts ids where a vector has their names."""
    for name, value in IDS.items():
        text = text.replace(name, value)
    return text


def only(fields: dict[str, Any], *known: str) -> dict[str, Any]:
    """Rejects fields that the runner does not know."""
    unknown = set(fields) - set(known)
    assert not unknown, f"unknown fields: {unknown}"
    return fields


def equal(found: object, wanted: object, subject: str) -> None:
    assert found == wanted, f"{subject}: {found!r} instead of {wanted!r}"


class Clocks:
    """The clocks of one holder. Different initial readings expose code that mixes up two clocks."""

    def __init__(self) -> None:
        self.mono, self.boot, self.wall = 5_000 * SECOND, 1_000_000 * SECOND, 1_800_000_000 * SECOND
        self.began = self.boot

    def now(self) -> Now:
        return Now(self.mono, self.boot, self.wall)

    def advance(self, by: int) -> None:
        self.mono += by
        self.sleep(by)

    def sleep(self, by: int) -> None:
        self.boot += by
        self.wall += by


class Player:
    """Plays one vector: a machine, its clocks, and the requests on their way."""

    def __init__(self, vector: dict[str, Any]) -> None:
        only(vector, "name", "jitter", "given", "steps")
        jitter = vector.get("jitter", 0.5)
        self.jitters = jitter if isinstance(jitter, list) else [jitter]
        self.steps = 0
        self.clocks = Clocks()
        self.sent: deque[tuple[Request, int]] = deque()
        self.flight: Optional[tuple[int, int]] = None
        self.expected: Optional[int] = None
        self.cancelled_requests: list[int] = []
        self.refresh_asked = False
        self.told: list[str] = []
        self.finished: Optional[Finish] = None
        given = vector.get("given", {})
        self.is_device = "device" in given
        asked = plan(given)
        self.door = asked.door
        self.machine = Machine(asked, self.clocks.now())
        self.carry_out(self.machine.begin())

    def play(self, steps: list[dict[str, Any]]) -> None:
        for number, step in enumerate(steps, 1):
            ((verb, argument),) = step.items()
            try:
                getattr(self, f"verb_{verb}")(argument)
            except AssertionError as error:
                raise AssertionError(f"step {number}, {verb}: {error}") from error
        assert not self.sent, f"requests that nobody expects: {self.sent}"

    def verb_acquired(self, fields: dict[str, Any]) -> None:
        path = "/api/v1/devices/sessions" if self.is_device else "/api/v1/licenses/acquire"
        self.verb_expect({"method": "POST", "path": path})
        granted = {
            "session_id": "$S",
            "expires_in_seconds": 360,
            "heartbeat_interval_seconds": 120,
            "status": "acquired",
        }
        self.verb_answer({"status": 201, "json": {**granted, **fields}})

    def verb_beat(self, fields: dict[str, Any]) -> None:
        if self.is_device:
            self.verb_expect(
                {"method": "POST", "path": "/api/v1/devices/sessions/heartbeat", "json": {"session_id": "$S"}}
            )
            self.verb_answer({"status": 204, **fields})
            return
        self.verb_expect({"method": "PATCH", "path": "/api/v1/licenses/sessions/$S/heartbeat"})
        self.verb_answer({"status": 200, "json": {"expires_in_seconds": 360, **fields}})

    def verb_expect(self, expect: dict[str, Any]) -> None:
        only(expect, "method", "path", "json", "at", "timeout", "bearer")
        assert self.sent, "no request is sent"
        request, sent = self.sent.popleft()
        equal(request.call.method, expect["method"], "method")
        equal(request.call.path, with_ids(expect["path"]), "path")
        equal(request.call.bearer, expect.get("bearer", True), "bearer token")
        if "json" in expect:
            equal(request.call.body, json.loads(with_ids(json.dumps(expect["json"]))), "body")
        else:
            equal(request.call.body is not None, request.call.method == "POST", "a body where there is one")
        if "at" in expect:
            equal(sent // MILLISECOND, span(expect["at"]) // MILLISECOND, "the time of the request")
        if "timeout" in expect:
            equal(request.timeout // MILLISECOND, span(expect["timeout"]) // MILLISECOND, "timeout")
        self.expected = request.id

    def verb_answer(self, answer: dict[str, Any]) -> None:
        only(answer, "status", "retry_after", "json", "text")
        body = with_ids(json.dumps(answer["json"])) if "json" in answer else answer.get("text", "")
        response = Response(answer["status"], answer.get("retry_after"), body.encode())
        self.step(Answered(self.landed(), response))

    def verb_fail(self, kind: str) -> None:
        self.step(Failed(self.landed(), FAILURES[kind]))

    def verb_cancelled(self, wanted: bool) -> None:
        assert self.expected is not None, "no request is expected"
        equal(self.expected in self.cancelled_requests, wanted, "cancelled")

    def verb_advance(self, by: str) -> None:
        """Advances the clocks, and fires timers and timeouts at their exact time."""
        end = self.clocks.boot + span(by)
        at_once = 0
        while True:
            timer, timeout = self.machine.wake_at(), self.flight and self.flight[1]
            upcoming = min((point for point in (timer, timeout) if point is not None), default=NEVER)
            if upcoming > end:
                break
            at_once = at_once + 1 if upcoming <= self.clocks.boot else 0
            assert at_once < STEPS_AT_ONCE_MAX, "the machine asks for time that has passed"
            self.clocks.advance(max(0, upcoming - self.clocks.boot))
            if self.flight is not None and timeout == upcoming:
                request, self.flight = self.flight[0], None
                self.step(Failed(request, Failure.TIMEOUT))
            else:
                self.step(Signal.TICK)
        self.clocks.advance(end - self.clocks.boot)

    def verb_sleep(self, by: str) -> None:
        self.clocks.sleep(span(by))
        self.step(Signal.TICK)

    def verb_freeze(self, by: str) -> None:
        self.clocks.advance(span(by))
        self.step(Signal.TICK)

    def verb_wall(self, jump: str) -> None:
        sign = -1 if jump.startswith("-") else 1
        self.clocks.wall = max(0, self.clocks.wall + sign * span(jump.lstrip("+-")))
        self.step(Signal.TICK)

    def verb_event(self, told: dict[str, Any]) -> None:
        only(told, "session", "reason", "by")
        session = with_ids(told["session"])
        if "reason" in told:
            self.step(SessionEnd(session, told["reason"], told.get("by")))
        else:
            assert "by" not in told, "a cause without a reason"
            self.step(StreamOver(session))

    def verb_call(self, call: str) -> None:
        if call == "activity":
            self.machine.note_activity(self.clocks.boot)
        else:
            self.step(CALLS[call])

    def verb_token(self, token: str) -> None:
        assert self.refresh_asked, "no token was asked for"
        self.refresh_asked = False
        self.step(TOKENS[token])

    def verb_state(self, wanted: dict[str, Any]) -> None:
        only(wanted, "kind", "until", "since", "reason", "by", "retry", "code")
        state = self.machine.state(self.clocks.boot)
        for name, value in wanted.items():
            found = getattr(state, name)
            if name in ("until", "since"):
                assert found is not None, f"{name} of {state}"
                found, value = (found - self.clocks.began) // MILLISECOND, span(value) // MILLISECOND
            equal(found, value, f"{name} of {state}")

    def verb_callback(self, wanted: list[str]) -> None:
        equal(self.told, wanted, "told")
        self.told = []

    def verb_finish(self, wanted: str) -> None:
        equal(self.finished and self.finished.value, wanted, "finish")
        self.finished = None

    def verb_session(self, wanted: dict[str, Any]) -> None:
        lease = self.machine.lease
        assert lease is not None, "no session"
        seats = wanted.get("seats")
        equal(lease.session, with_ids(wanted["id"]), "session")
        equal(lease.license_id, wanted.get("license_id"), "license")
        equal(lease.seats, seats and tuple(seats), "seats")
        equal(self.door.events_path(lease.session), with_ids(wanted["events"]), "events")

    def verb_no_request_for(self, by: str) -> None:
        assert not self.sent, f"requests before: {self.sent}"
        self.verb_advance(by)
        assert not self.sent, f"requests: {self.sent}"

    def landed(self) -> int:
        """Takes the expected request out of flight; an aborted request may still be answered."""
        assert self.expected is not None, "no request is expected"
        request, self.expected = self.expected, None
        if self.flight is not None and self.flight[0] == request:
            self.flight = None
        else:
            assert request in self.cancelled_requests, "the request timed out already"
        return request

    def step(self, event: Event) -> None:
        jitter = self.jitters[self.steps % len(self.jitters)]
        self.steps += 1
        self.carry_out(self.machine.step(event, self.clocks.now(), jitter))
        state = self.machine.state(self.clocks.boot)
        if state.kind == "active":
            assert state.until is not None and self.clocks.boot < state.until, "active after the deadline"

    def carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                assert self.flight is None, f"a second request in flight: {action}"
                now = self.clocks.boot
                self.flight = (action.request.id, now + action.request.timeout)
                self.sent.append((action.request, now - self.clocks.began))
            elif isinstance(action, Cancel):
                if self.flight is not None and self.flight[0] == action.request:
                    self.flight = None
                self.cancelled_requests.append(action.request)
            elif isinstance(action, RefreshToken):
                assert not self.refresh_asked, "a second refresh"
                self.refresh_asked = True
            elif isinstance(action, Tell):
                self.told.append(action.state.kind)
            else:
                assert self.finished is None, "a second end"
                self.finished = action


def plan(given: dict[str, Any]) -> Plan:
    """Returns the plan that the member ``given`` of a vector describes."""
    only(
        given,
        "license_key",
        "machine_id",
        "instance_id",
        "user_agent",
        "metadata",
        "client",
        "device",
        "wait",
        "patience",
    )
    fields = dict(given)
    terms = {name: span_or_forever(fields.pop(name)) for name in ("wait", "patience") if name in fields}
    device = fields.pop("device", None)
    if device is None:
        return Plan(LicenseDoor(**{"license_key": "K", "machine_id": "m", **fields}), **terms)
    assert not fields, f"a device has none of {fields}"
    only(device, "device_id", "device_type", "device_name", "session_id", "replace_session_id")
    return Plan(DeviceDoor(**{name: with_ids(value) for name, value in device.items()}), **terms)


def span_or_forever(text: str) -> int:
    return FOREVER if text == "forever" else span(text)


class SplitMix64:
    """The generator of jitter that ``sdk/vectors/README.md`` defines."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def draw(self) -> float:
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return float((z ^ (z >> 31)) >> 11) / float(1 << 53)


def play_fleet(fleet: dict[str, Any]) -> None:
    """Plays many holders, one outage, and the load on the server after the outage."""
    only(
        fleet,
        "name",
        "holders",
        "seed",
        "grant",
        "outage_from",
        "outage_to",
        "outage",
        "until",
        "bucket_share_max",
        "spread_min",
        "tries_per_interval_max",
        "state",
    )
    interval = fleet["grant"]["heartbeat_interval_seconds"] * SECOND
    most, outage_to = fleet["tries_per_interval_max"], span(fleet["outage_to"])
    first = []
    for number in range(fleet["holders"]):
        sent = fleet_requests(fleet, number)
        for early, late in zip(sent, sent[most:]):
            assert late - early >= interval, f"holder {number}: more than {most} tries"
        first.append(next(at for at in sent if at >= outage_to))
    fullest = Counter(at // BUCKET for at in first).most_common(1)[0][1]
    assert fullest / fleet["holders"] <= fleet["bucket_share_max"], f"{fullest} requests within 100 ms"
    assert max(first) - min(first) >= span(fleet["spread_min"]), "the spread"


def fleet_requests(fleet: dict[str, Any], number: int) -> list[int]:
    """Returns the times of the requests of one holder since the beginning."""
    random, clocks = SplitMix64(fleet["seed"] + number), Clocks()
    machine = Machine(Plan(LicenseDoor("K", f"m{number}")), clocks.now())
    outage_from, outage_to = (clocks.began + span(fleet[name]) for name in ("outage_from", "outage_to"))
    end = clocks.began + span(fleet["until"])
    granted = json.dumps({**fleet["grant"], "session_id": IDS["$S"]}).encode()
    flight: Optional[tuple[Request, int]] = None
    sent = []
    actions = machine.begin()
    for _ in range(FLEET_STEPS_MAX):
        for action in actions:
            if isinstance(action, Send):
                assert flight is None, "a second request in flight"
                sent.append(clocks.boot - clocks.began)
                flight = (action.request, clocks.boot + ROUND_TRIP)
        arrival = flight[1] if flight else NEVER
        wake_at = machine.wake_at()
        upcoming = min(arrival, NEVER if wake_at is None else wake_at)
        if upcoming > end:
            equal(machine.state(clocks.boot).kind, fleet["state"], f"holder {number}")
            return sent
        clocks.advance(max(0, upcoming - clocks.boot))
        event: Event = Signal.TICK
        if flight is not None and arrival == upcoming:
            request, flight = flight[0], None
            if outage_from <= upcoming < outage_to:
                event = fleet_outage(fleet["outage"], request.id)
            else:
                status = 201 if request.call.method == "POST" else 200
                event = Answered(request.id, Response(status, None, granted))
        actions = machine.step(event, clocks.now(), random.draw())
    raise AssertionError(f"holder {number} goes round in circles")


def fleet_outage(outage: str, request: int) -> Event:
    if outage == "refused":
        return Failed(request, Failure.REFUSED)
    equal(outage, "503", "outage")
    return Answered(request, Response(503, 1, b""))


assert math.isclose(SplitMix64(0).draw(), 0.8833108082136426), "the generator is not SplitMix64"
