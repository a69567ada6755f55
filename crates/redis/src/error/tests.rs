//! The consequence of each refusal of a server, as the server words the refusal.

use std::io;

use redis::{RedisError, Value, parse_redis_value};

use super::{
    is_cut_off, is_end_of_connection, is_moved, is_not_loaded, is_rejection, is_without_answer, not_reached,
};

/// The consequences of an error for the call and the connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Consequences {
    ends_connection: bool,
    is_moved: bool,
    is_not_loaded: bool,
    is_rejection: bool,
}

/// Returns the error of a reply that begins with `-`.
fn refusal(reply: &str) -> RedisError {
    let value = parse_redis_value(format!("-{reply}\r\n").as_bytes()).expect("a reply");
    let Value::ServerError(error) = value else { panic!("{value:?} is no error") };
    error.into()
}

#[test]
fn each_refusal_has_its_consequence() {
    let nothing = Consequences::default;
    let cases = [
        ("LOADING Redis is loading the dataset in memory", nothing()),
        ("OOM command not allowed when used memory > 'maxmemory'.", nothing()),
        ("NOREPLICAS Not enough good replicas to write.", nothing()),
        ("MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.", nothing()),
        ("BUSY Redis is busy running a script.", nothing()),
        ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", nothing()),
        ("CLUSTERDOWN The cluster is down", nothing()),
        ("TRYAGAIN Multiple keys request during rehashing of slot", nothing()),
        (
            "READONLY You can't write against a read only replica.",
            Consequences { ends_connection: true, ..nothing() },
        ),
        ("MOVED 3999 127.0.0.1:6381", Consequences { is_moved: true, ..nothing() }),
        ("NOAUTH Authentication required.", Consequences { is_rejection: true, ..nothing() }),
        (
            "WRONGPASS invalid username-password pair or user is disabled.",
            Consequences { is_rejection: true, ..nothing() },
        ),
        (
            "NOPERM User ann has no permissions to run the 'info' command",
            Consequences { is_rejection: true, ..nothing() },
        ),
        ("NOSCRIPT No matching script.", Consequences { is_not_loaded: true, ..nothing() }),
    ];
    for (reply, consequences) in cases {
        let error = refusal(reply);
        let seen = Consequences {
            ends_connection: is_end_of_connection(&error),
            is_moved: is_moved(&error),
            is_not_loaded: is_not_loaded(&error),
            is_rejection: is_rejection(&error),
        };
        assert_eq!(seen, consequences, "{reply}");
        // The server has answered, and the call changed nothing.
        assert!(!is_without_answer(&error) && !is_cut_off(&error) && !error.is_timeout(), "{reply}");
    }
}

/// An operator mends a certificate. A server that is away comes back by itself.
#[test]
fn a_certificate_that_is_not_trusted_is_a_rejection() {
    let by = |kind: io::ErrorKind| is_rejection(&io::Error::from(kind).into());
    assert!(by(io::ErrorKind::InvalidData));
    assert!(!by(io::ErrorKind::ConnectionRefused) && !by(io::ErrorKind::UnexpectedEof));
    assert!(!is_rejection(&not_reached("it hangs")));
}
