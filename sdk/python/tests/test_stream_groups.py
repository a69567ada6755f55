"""Groups of seats that share an event stream, and the news of answers and events."""

from __future__ import annotations

import json
import unittest
from typing import Optional

from seatkeeper._core.door import DeviceDoor, LicenseDoor
from seatkeeper._core.events import SessionEnd, StreamOver
from seatkeeper._sse import ServerEvent
from seatkeeper._stream_connection import read_event
from seatkeeper._stream_groups import SEATS_MAX, Group, Groups, Member, News, NotShared, read_status

#: The owner of the token of most seats.
OWNER = "ann"


class GroupsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.groups = Groups()

    def join(self, member: Member, session: Optional[str] = None, owner: str = OWNER) -> Group:
        """Joins a seat of a license, whose stream must not be over."""
        group = self.groups.join(member, owner, LicenseDoor, session or f"s{member.key}")
        assert group is not None
        self.assertIs(member.group, group)
        return group

    def test_seats_of_one_owner_and_api_share_a_group(self) -> None:
        group = self.join(Member(1))
        self.assertIs(self.join(Member(2)), group)
        self.assertEqual(group.sessions, ["s1", "s2"])
        self.assertIsNot(self.join(Member(3), owner="bob"), group)
        self.assertIsNot(self.groups.join(Member(4), OWNER, DeviceDoor, "s4"), group)

    def test_a_full_group_takes_no_more_seats_until_one_leaves(self) -> None:
        members = [Member(key) for key in range(SEATS_MAX)]
        (first,) = {self.join(member) for member in members}
        second = self.join(Member(SEATS_MAX))
        self.assertEqual((SEATS_MAX, len(first.sessions)), (100, 100))
        self.assertIsNot(second, first)
        self.assertIsNone(self.groups.leave(members[7]))
        self.assertIs(self.join(Member(SEATS_MAX + 1)), first)
        self.assertIs(self.join(Member(SEATS_MAX + 2)), second)

    def test_the_last_seat_that_leaves_empties_its_group(self) -> None:
        one, two = Member(1), Member(2)
        group = self.join(one)
        self.join(two)
        self.assertIsNone(self.groups.leave(one))
        self.assertIsNone(self.groups.leave(one))
        self.assertEqual(group.sessions, ["s2"])
        self.assertIs(self.groups.leave(two), group)
        self.assertIsNot(self.join(Member(3)), group)

    def test_two_seats_of_one_session_are_named_once_and_both_told(self) -> None:
        one, two, three = Member(1), Member(2), Member(3)
        group = self.join(one, "s")
        self.join(two)
        self.join(three, "s")
        self.assertEqual(group.sessions, ["s", "s2"])
        self.assertEqual((group.with_session("s"), group.with_session("none")), ([one, three], []))

    def test_an_isolated_session_never_shares_a_group_again(self) -> None:
        one, two, three = Member(1), Member(2), Member(3)
        group = self.join(one)
        self.join(two)
        self.groups.isolate(two)
        for _ in range(2):
            self.groups.leave(two)
            alone = self.join(two)
            self.assertIsNot(alone, group)
            self.assertIs(self.join(three), group)
            self.groups.leave(three)
        self.assertIs(self.groups.leave(two), alone)
        self.assertIs(self.join(two, "another"), group, "the next session of the seat shares a group")

    def test_a_session_whose_stream_is_over_joins_no_group(self) -> None:
        one = Member(1)
        group = self.join(one)
        self.groups.end(one)
        self.assertIs(self.groups.leave(one), group)
        for _ in range(2):
            self.assertIsNone(self.groups.join(one, OWNER, LicenseDoor, "s1"))
        self.assertEqual(self.join(one, "another").sessions, ["another"])

    def test_a_seat_that_was_forgotten_leaves_nothing(self) -> None:
        for key in range(3):
            member = Member(key)
            self.join(member)
            self.groups.isolate(member)
            self.groups.end(member)
            self.groups.leave(member)
            self.groups.forget(member)
            self.assertIsNone(member.group)
        self.assertEqual([found for found in vars(self.groups).values() if found], [])


class EndsTest(unittest.TestCase):
    def test_an_end_is_heard_once_until_the_server_shows_the_session_alive(self) -> None:
        member = Member(1)
        member.session = "s"
        self.assertEqual([member.hear_end(), member.hear_end()], [True, False])
        member.hear_alive()
        self.assertEqual([member.hear_end(), member.hear_end()], [True, False])
        member.session = "another"
        self.assertEqual([member.hear_end(), member.hear_end()], [True, False])


class NewsTest(unittest.TestCase):
    def test_204_and_404_end_the_stream_of_one_session(self) -> None:
        for status in (204, 404):
            self.assertEqual(read_status(status, ["a"]), [StreamOver("a")], status)
        for other in (None, 200, 400, 401, 403, 429, 503):
            self.assertEqual(read_status(other, ["a"]), [], other)

    def test_a_refused_shared_stream_leaves_each_session_a_stream_of_its_own(self) -> None:
        both: list[News] = [NotShared("a"), NotShared("b")]
        for status in (204, 400, 403, 404, 405, 414, 431):
            self.assertEqual(read_status(status, ["a", "b"]), both, status)
        for other in (None, 200, 201, 302, 401, 429, 500, 502, 503):
            self.assertEqual(read_status(other, ["a", "b"]), [], other)
            self.assertEqual(read_status(other, []), [], other)

    def test_an_unknown_session_gets_a_stream_of_its_own(self) -> None:
        def read(name: str, members: object) -> Optional[News]:
            return read_event(ServerEvent(name, json.dumps(members)))

        self.assertEqual(read("unknown", {"session_id": "a"}), NotShared("a"))
        self.assertEqual(read("revoked", {"session_id": "b", "reason": "revoked"}), SessionEnd("b", "revoked"))
        without_session: list[object] = [{}, {"session_id": 7}, [], None, "a"]
        for members in without_session:
            self.assertIsNone(read("unknown", members))

    def test_the_path_names_the_other_sessions(self) -> None:
        path = "/api/v1/licenses/sessions/a/events"
        self.assertEqual(LicenseDoor.events_path("a"), path)
        self.assertEqual(LicenseDoor.events_path("a", "b", "c"), f"{path}?with=b,c")
        self.assertEqual(DeviceDoor.events_path("a", "b"), "/api/v1/devices/sessions/a/events?with=b")


if __name__ == "__main__":
    unittest.main()
