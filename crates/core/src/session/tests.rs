//! Tests of the users of a session.

use super::{USERS_PER_SESSION_MAX, Users};
use crate::UserId;

fn user(n: usize) -> UserId {
    format!("user {n}").as_str().into()
}

fn who_is_in(users: &Users) -> Vec<usize> {
    (0..100).filter(|&n| users.contains(&user(n))).collect()
}

#[test]
fn the_one_who_was_admitted_is_the_first() {
    let users = Users::one(user(0));
    assert_eq!(users.first(), &user(0));
    assert_eq!(who_is_in(&users), [0]);
}

#[test]
fn users_join_once() {
    let mut users = Users::one(user(0));
    for n in [1, 0, 1, 2] {
        users.join(&user(n));
    }
    let mut same = Users::one(user(0));
    same.join(&user(1));
    same.join(&user(2));
    assert_eq!(users, same);
    assert_eq!(users.first(), &user(0));
    assert!(users.iter().eq(&[user(0), user(1), user(2)]));
}

#[test]
fn past_the_bound_the_latest_to_join_gives_way_and_the_first_never_does() {
    let mut users = Users::one(user(0));
    for n in 1..USERS_PER_SESSION_MAX {
        users.join(&user(n));
    }
    assert_eq!(who_is_in(&users), (0..USERS_PER_SESSION_MAX).collect::<Vec<_>>());
    users.join(&user(50));
    assert_eq!(who_is_in(&users), [0, 1, 2, 3, 4, 5, 6, 50]);
    users.join(&user(51));
    assert_eq!(who_is_in(&users), [0, 1, 2, 3, 4, 5, 6, 51]);
}

#[test]
fn one_who_is_in_already_takes_nobodys_place() {
    let mut users = Users::one(user(0));
    for n in 1..USERS_PER_SESSION_MAX {
        users.join(&user(n));
    }
    let before = users.clone();
    users.join(&user(3));
    assert_eq!(users, before);
}

#[test]
fn one_of_several_may_leave_and_the_last_may_not() {
    let mut users = Users::one(user(0));
    assert!(!users.leave(&user(0)), "nobody else is in");
    users.join(&user(1));
    users.join(&user(2));
    assert!(!users.leave(&user(9)), "not in");
    assert!(users.leave(&user(0)));
    assert_eq!((who_is_in(&users), users.first()), (vec![1, 2], &user(1)));
    assert!(users.leave(&user(2)));
    assert_eq!(who_is_in(&users), [1]);
    assert!(!users.leave(&user(1)), "the last one");
    assert_eq!(who_is_in(&users), [1]);
}

#[test]
fn who_is_alone_again_is_as_if_nobody_had_shared() {
    let (ann, bob) = (UserId::new("ann"), UserId::new("bob"));
    for (leaver, stays) in [(&bob, &ann), (&ann, &bob)] {
        let mut users = Users::one(ann.clone());
        users.join(&bob);
        assert!(users.leave(leaver));
        assert_eq!(users, Users::one(stays.clone()));
        assert!(!users.leave(stays), "the last one stays");
    }
}
