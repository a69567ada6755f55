//! Cursor of a client in the events of a session, sent as the id of an event.

use std::fmt;
use std::str::FromStr;

/// A client's knowledge after an event. The cursor suffices for any node to resume the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Version of the entitlement known to the client.
    pub(super) version: u64,
    /// `true` if the client knows of the session's end.
    pub(super) ended: bool,
}

/// Suffix of the version after the session's end.
const ENDED: &str = "-ended";

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.version, if self.ended { ENDED } else { "" })
    }
}

/// A text that is not the id of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;
    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (version, ended) = text.strip_suffix(ENDED).map_or((text, false), |version| (version, true));
        Ok(Self { version: version.parse().map_err(|_| NotACursor)?, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, NotACursor};

    #[test]
    fn an_id_is_read_as_it_was_written() {
        for cursor in [Cursor { version: 0, ended: true }, Cursor { version: u64::MAX, ended: false }] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "-ended", "1-", "1-ended-ended", "x", "-1", "99999999999999999999"] {
            assert_eq!(text.parse::<Cursor>(), Err(NotACursor), "{text}");
        }
    }
}
