//! How far a client has heard: the id of an event.

use std::fmt;
use std::str::FromStr;

/// What a client knows once it has heard an event. It says enough for any node to go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The version of the subscriber's terms that it knows.
    pub(super) version: u64,
    /// Whether it knows that the session has ended.
    pub(super) ended: bool,
}

/// What follows the version once the session has ended.
const ENDED: &str = "-ended";

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.version, if self.ended { ENDED } else { "" })
    }
}

/// A text that is no event's id.
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
