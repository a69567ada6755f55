//! Joins, leaves and refusals, without a stream.

use std::mem::discriminant;

use seatkeeper_client_core::{DeviceDoor, DeviceType, LicenseDoor};

use super::StreamChange::{Close, Open, Shrink};
use super::*;
use crate::events::{Cursor, TokenDigest};
use crate::token_keeper::TokenKeeper;

/// The table with the group of most tests.
struct Table {
    streams: SharedStreams,
    group: StreamGroup,
}

fn group(owner: &str, door: &Door) -> StreamGroup {
    StreamGroup { owner: TokenOwner(owner.into()), door: discriminant(door) }
}

fn licenses(owner: &str) -> StreamGroup {
    group(owner, &LicenseDoor::new("K", "m").into())
}

fn session(number: u64) -> Arc<str> {
    format!("s-{number}").into()
}

fn sessions(numbers: &[u64]) -> Arc<[Arc<str>]> {
    numbers.iter().map(|number| session(*number)).collect()
}

impl Table {
    fn new() -> Self {
        Self { streams: SharedStreams::default(), group: licenses("") }
    }

    /// Returns a table whose seats `1..=count` follow the session of their number, without the changes so far.
    fn with_seats(count: u64) -> Self {
        let mut table = Self::new();
        (1..=count).for_each(|number| table.follow(number, number));
        table.streams.take_changes();
        table
    }

    fn follow(&mut self, key: u64, number: u64) {
        self.streams.follow(SeatKey(key), &session(number), self.group.clone());
    }

    fn changes(&mut self) -> Vec<StreamChange> {
        self.streams.take_changes()
    }

    /// Returns the sessions of each stream.
    fn shown(&self) -> Vec<(u64, Arc<[Arc<str>]>)> {
        self.streams.streams.keys().map(|id| (id.0, self.streams.sessions(*id))).collect()
    }
}

const FIRST: StreamId = StreamId(1);
const SECOND: StreamId = StreamId(2);
const THIRD: StreamId = StreamId(3);

#[test]
fn seats_of_one_token_and_one_door_share_a_stream() {
    let mut table = Table::new();
    table.follow(1, 1);
    table.follow(2, 2);
    table.follow(1, 1);
    assert_eq!(table.changes(), [Open(FIRST), Open(FIRST)], "a seat that is followed changes nothing");
    assert_eq!(table.shown(), [(1, sessions(&[1, 2]))]);
    assert_eq!(table.streams.seats_of(FIRST, "s-2"), [SeatKey(2)]);
    let device = group("", &DeviceDoor::new("d", DeviceType::Tv).into());
    table.streams.follow(SeatKey(3), &session(3), device);
    table.streams.follow(SeatKey(4), &session(4), licenses("machine"));
    assert_eq!(table.changes(), [Open(SECOND), Open(THIRD)]);
    assert_eq!(table.streams.owner(THIRD), Some(&TokenOwner("machine".into())));
}

#[test]
fn a_full_stream_takes_a_seat_once_another_has_left() {
    let mut table = Table::with_seats(101);
    assert_eq!(table.streams.sessions(FIRST).len(), 100);
    assert_eq!(table.streams.sessions(SECOND), sessions(&[101]));
    table.streams.unfollow(SeatKey(7));
    assert_eq!(table.changes(), [Shrink(FIRST)], "a leave opens nothing");
    table.follow(102, 102);
    assert_eq!(table.changes(), [Open(FIRST)]);
    assert_eq!((table.shown().len(), table.streams.sessions(FIRST).len()), (2, 100));
}

#[test]
fn a_stream_closes_with_its_last_seat_and_its_id_is_not_used_again() {
    let mut table = Table::with_seats(2);
    table.streams.unfollow(SeatKey(1));
    table.streams.unfollow(SeatKey(1));
    table.streams.forget(SeatKey(2));
    table.streams.forget(SeatKey(2));
    assert_eq!(table.changes(), [Shrink(FIRST), Close(FIRST)]);
    assert!(table.streams.seats.is_empty() && table.streams.streams.is_empty());
    table.follow(1, 1);
    assert_eq!(table.changes(), [Open(SECOND)]);
}

#[test]
fn a_new_session_of_a_seat_takes_the_place_of_the_old_one() {
    let mut table = Table::with_seats(2);
    table.follow(1, 3);
    assert_eq!(table.changes(), [Shrink(FIRST), Open(FIRST)]);
    assert_eq!(table.shown(), [(1, sessions(&[2, 3]))]);
    assert!(table.streams.seats_of(FIRST, "s-1").is_empty());
}

#[test]
fn two_seats_of_one_session_are_listed_once_and_both_hear_of_it() {
    let mut table = Table::with_seats(1);
    table.follow(2, 1);
    assert_eq!(table.changes(), [Open(FIRST)]);
    assert_eq!(table.shown(), [(1, sessions(&[1]))]);
    assert_eq!(table.streams.end(FIRST, "s-1"), [SeatKey(1), SeatKey(2)]);
    assert_eq!(table.changes(), [Shrink(FIRST), Close(FIRST)]);
}

#[test]
fn a_session_without_further_events_is_followed_no_more() {
    let mut table = Table::with_seats(2);
    assert_eq!(table.streams.end(FIRST, "s-1"), [SeatKey(1)]);
    table.streams.unfollow(SeatKey(1));
    table.follow(1, 1);
    assert_eq!(table.changes(), [Shrink(FIRST)]);
    assert_eq!(table.shown(), [(1, sessions(&[2]))]);
    assert!(table.streams.end(FIRST, "s-1").is_empty(), "the session is told once");
    table.follow(1, 3);
    assert_eq!(table.changes(), [Open(FIRST)], "the next session has a stream");
}

#[test]
fn a_session_that_the_server_cannot_share_has_a_stream_of_its_own_for_ever() {
    let mut table = Table::with_seats(3);
    table.streams.separate(FIRST, "s-2");
    assert_eq!(table.changes(), [Shrink(FIRST), Open(SECOND)]);
    assert_eq!(table.shown(), [(1, sessions(&[1, 3])), (2, sessions(&[2]))]);
    table.follow(4, 4);
    assert_eq!(table.shown()[1], (2, sessions(&[2])), "no seat joins the stream");
    table.changes();
    table.streams.unfollow(SeatKey(2));
    table.streams.unfollow(SeatKey(2));
    table.follow(2, 2);
    assert_eq!(table.changes(), [Close(SECOND), Open(THIRD)]);
    assert_eq!(table.shown(), [(1, sessions(&[1, 3, 4])), (3, sessions(&[2]))]);
    table.follow(2, 5);
    assert_eq!(table.shown(), [(1, sessions(&[1, 3, 4, 5]))], "another session of the seat may share");
}

#[test]
fn a_refused_session_is_over_and_sessions_that_joined_meanwhile_are_opened() {
    let mut table = Table::with_seats(1);
    table.follow(2, 2);
    table.changes();
    assert_eq!(table.streams.refuse(FIRST, &sessions(&[1])), [SeatKey(1)]);
    assert_eq!(table.changes(), [Shrink(FIRST), Open(FIRST)]);
    assert_eq!(table.streams.refuse(FIRST, &sessions(&[2])), [SeatKey(2)]);
    assert_eq!(table.changes(), [Close(FIRST)]);
    assert!(table.streams.refuse(FIRST, &sessions(&[2])).is_empty());
    assert_eq!(table.changes(), []);
}

#[test]
fn the_seats_of_a_refused_shared_stream_get_streams_of_their_own() {
    let mut table = Table::with_seats(3);
    assert!(table.streams.refuse(FIRST, &sessions(&[1, 2])).is_empty());
    let singles: Vec<_> = (1..=3).map(|number| (number + 1, sessions(&[number]))).collect();
    assert_eq!(table.shown(), singles);
    let changes = table.changes();
    let opened = changes.iter().filter(|change| matches!(change, Open(_)));
    assert_eq!((opened.count(), changes.contains(&Close(FIRST))), (3, true));
    table.follow(4, 4);
    assert_eq!(table.shown()[3], (5, sessions(&[4])), "a later seat may share again");
}

#[test]
fn a_rejected_stream_opens_with_the_next_token_and_the_whole_list() {
    let mut keeper = TokenKeeper::default();
    let mut table = Table::with_seats(2);
    let owner = table.group.owner.clone();
    let cursor = Some(Cursor { session: session(1), last_id: "7".to_owned() });
    let none = Resumption::default();
    assert_eq!(table.streams.start(FIRST, keeper.current()), none);
    let rejected = Resumption { cursor: cursor.clone(), rejected: Some(TokenDigest::new("t")) };
    table.streams.reject(FIRST, rejected, keeper.current());
    table.follow(3, 3);
    table.streams.renew_all(&owner, keeper.current());
    assert_eq!(table.changes(), [], "no reader runs without a token");
    keeper.finish(true);
    table.streams.renew_all(&TokenOwner("other".into()), keeper.current());
    assert_eq!(table.changes(), []);
    table.streams.renew_all(&owner, keeper.current());
    table.streams.renew_all(&owner, keeper.current());
    assert_eq!(table.changes(), [Open(FIRST)]);
    assert_eq!(table.streams.sessions(FIRST).len(), 3);
    let left = Resumption { cursor, rejected: None };
    assert_eq!(table.streams.start(FIRST, keeper.current()), left, "the next token may have the same text");
    assert_eq!(table.streams.start(FIRST, keeper.current()), none, "the cursor is taken");
}

#[test]
fn a_stream_that_was_rejected_with_an_old_token_opens_at_once() {
    let mut keeper = TokenKeeper::default();
    let mut table = Table::with_seats(1);
    table.streams.start(FIRST, keeper.current());
    keeper.finish(true);
    table.streams.reject(FIRST, Resumption::default(), keeper.current());
    assert_eq!(table.changes(), [Open(FIRST)]);
}

#[test]
fn an_accepted_request_of_a_seat_opens_its_rejected_stream_for_another_token() {
    let keeper = TokenKeeper::default();
    let mut table = Table::with_seats(2);
    let rejected = Resumption { cursor: None, rejected: Some(TokenDigest::new("t")) };
    table.streams.retry_rejected(SeatKey(2));
    assert_eq!(table.changes(), [], "the stream is not rejected");
    table.streams.reject(FIRST, rejected.clone(), keeper.current());
    table.streams.retry_rejected(SeatKey(3));
    assert_eq!(table.changes(), [], "the seat has no stream");
    table.streams.retry_rejected(SeatKey(2));
    table.streams.retry_rejected(SeatKey(1));
    assert_eq!(table.changes(), [Open(FIRST)]);
    assert_eq!(table.streams.start(FIRST, keeper.current()), rejected);
    table.follow(3, 3);
    assert_eq!(table.changes(), [Open(FIRST)], "a join reaches the reader");
}

#[test]
fn an_end_is_told_once_until_an_answer_contradicts_it() {
    let mut table = Table::with_seats(2);
    assert_eq!(table.streams.tell_end(FIRST, "s-1"), [SeatKey(1)]);
    assert!(table.streams.tell_end(FIRST, "s-1").is_empty(), "the end is told again");
    assert_eq!(table.streams.tell_end(FIRST, "s-2"), [SeatKey(2)]);
    table.streams.contradict_end(SeatKey(1));
    assert_eq!(table.streams.tell_end(FIRST, "s-1"), [SeatKey(1)]);
    table.streams.separate(FIRST, "s-1");
    assert!(table.streams.tell_end(SECOND, "s-1").is_empty(), "the next stream tells the end again");
    table.follow(1, 3);
    assert_eq!(table.streams.tell_end(FIRST, "s-3"), [SeatKey(1)], "another session");
    table.streams.unfollow(SeatKey(1));
    table.streams.forget(SeatKey(2));
    assert!(table.streams.told.is_empty());
}

#[test]
fn a_followed_session_is_small() {
    assert!(size_of::<(SeatKey, FollowedSession)>() <= 40);
}
