//! Server-sent events, parsed by the rules of the WHATWG.

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// The name of the event; empty without a name.
    pub name: String,
    /// The data, with a line feed between two lines.
    pub data: String,
}

/// A stream whose event is longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The longest event that is read: no event of a server comes near.
const EVENT_BYTES_MAX: usize = 64 * 1024;

/// A parser that takes a stream in pieces of any length.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The bytes of a line without its end.
    line: Vec<u8>,
    /// The last byte ended a line as CR: an LF at the beginning of the next piece belongs to that end.
    after_cr: bool,
    /// The first line is parsed: only the first line may begin with a byte order mark.
    began: bool,
    name: String,
    data: String,
    id: Option<String>,
    last_id: Option<String>,
}

impl Parser {
    /// Returns a parser that resumes after the event of this id.
    pub(crate) fn resuming(last_id: Option<String>) -> Self {
        Self { id: last_id.clone(), last_id, ..Self::default() }
    }

    /// Returns the id to resume after.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Takes the next bytes, and returns the events that they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<ServerEvent>, TooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    events.extend(self.end_line());
                }
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.data.len() > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// Interprets a whole line; an empty line completes an event.
    fn end_line(&mut self) -> Option<ServerEvent> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let first = !std::mem::replace(&mut self.began, true);
        let line = if first { text.trim_start_matches('\u{feff}') } else { &*text };
        if line.is_empty() {
            return self.complete();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // A comment has an empty name. `retry` and unknown fields change nothing: the client has its own backoff.
            _ => {}
        }
        None
    }

    fn complete(&mut self) -> Option<ServerEvent> {
        self.last_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        // The line feed of the last line is no part of the data. Without a line of data there is no event.
        data.pop()?;
        Some(ServerEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> ServerEvent {
        ServerEvent { name: name.to_owned(), data: data.to_owned() }
    }

    /// Parses the text whole, and byte by byte.
    fn parse(text: &str) -> (Vec<ServerEvent>, Option<String>) {
        let mut whole = Parser::default();
        let events = whole.feed(text.as_bytes()).unwrap();
        let mut pieces = Parser::default();
        let bytes = text.as_bytes().chunks(1);
        let piecewise: Vec<ServerEvent> = bytes.flat_map(|byte| pieces.feed(byte).unwrap()).collect();
        assert_eq!(events, piecewise, "{text:?}");
        assert_eq!(whole.last_id(), pieces.last_id(), "{text:?}");
        (events, whole.last_id().map(str::to_owned))
    }

    #[test]
    fn lines_end_with_lf_cr_lf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["event: a", "data: 1", "", "event: b", "data: 2", "", ""].join(end);
            assert_eq!(parse(&text).0, [event("a", "1"), event("b", "2")], "{end:?}");
        }
    }

    #[test]
    fn several_lines_of_data_are_one_text_and_one_space_after_the_colon_is_none_of_it() {
        assert_eq!(parse("data: a\ndata:b\ndata:  c\ndata\n\n").0, [event("", "a\nb\n c\n")]);
    }

    #[test]
    fn comments_unknown_fields_and_retries_are_no_events() {
        assert_eq!(parse(": still here\n\nretry: 10\n\ncolour: red\n\nevent: x\n\n").0, []);
        assert_eq!(parse(":\nevent: a\n: between\ndata: 1\n\n").0, [event("a", "1")]);
    }

    #[test]
    fn an_event_without_a_name_does_not_get_the_name_before() {
        assert_eq!(parse("event: x\n\ndata: 1\n\n").0, [event("", "1")]);
    }

    #[test]
    fn an_id_counts_from_the_end_of_its_event_and_stays() {
        assert_eq!(parse("id: 1\n\n").1.as_deref(), Some("1"));
        assert_eq!(parse("id: 1\ndata: a\n\nid: 2\ndata: b\n").1.as_deref(), Some("1"));
        assert_eq!(parse("id: 1\n\ndata: a\n\n").1.as_deref(), Some("1"));
        assert_eq!(parse("id: 1\n\nid: 2\0\n\n").1.as_deref(), Some("1"));
        assert_eq!(parse("id: 1\n\nid\n\n").1, None);
        let mut resumed = Parser::resuming(Some("7".to_owned()));
        resumed.feed(b": still here\n\n").unwrap();
        assert_eq!(resumed.last_id(), Some("7"));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_at_the_beginning_alone() {
        assert_eq!(parse("\u{feff}data: 1\n\n").0, [event("", "1")]);
        assert_eq!(parse("\n\u{feff}data: 1\n\n").0, []);
    }

    #[test]
    fn a_character_may_be_cut_between_two_pieces() {
        assert_eq!(parse("data: Ann’s phone\n\n").0, [event("", "Ann’s phone")]);
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_refused() {
        let long = vec![b'x'; EVENT_BYTES_MAX + 1];
        assert_eq!(Parser::default().feed(&long), Err(TooLong));
        let lines = "data: 0123456789\n".repeat(EVENT_BYTES_MAX / 10);
        assert_eq!(Parser::default().feed(lines.as_bytes()), Err(TooLong));
        let events = "data: 0123456789\n\n".repeat(EVENT_BYTES_MAX / 10);
        assert!(Parser::default().feed(events.as_bytes()).is_ok());
    }
}
