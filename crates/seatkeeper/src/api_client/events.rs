//! Server-sent events. A comment or a lone id is not an event.

use reqwest::{Response, Url};
use serde::de::DeserializeOwned;

use super::{Error, understood};

/// An open stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    url: Url,
    response: Response,
    unread: Vec<u8>,
}

/// A server-sent event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub name: String,
    pub data: String,
}

impl Events {
    pub(super) fn new(url: Url, response: Response) -> Self {
        Self { url, response, unread: Vec::new() }
    }

    /// Returns the next event; `None` once the server has closed the stream. Dropping the future loses no
    /// event.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(end) = self.unread.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.unread.drain(..end + 2).collect();
                let event = event_of(&String::from_utf8_lossy(&block));
                if !event.name.is_empty() {
                    return Ok(Some(event));
                }
            }
            let chunk = self.response.chunk().await;
            let chunk = chunk.map_err(|source| Error::NoAnswer { url: self.url.clone(), source })?;
            let Some(chunk) = chunk else { return Ok(None) };
            self.unread.extend_from_slice(&chunk);
        }
    }

    /// Parses the data of an event as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self, event: &Event) -> Result<T, Error> {
        let strange = |source| Error::Strange { url: self.url.clone(), source };
        understood(&self.url, serde_json::from_str(&event.data).map_err(strange)?)
    }
}

/// Parses the block between two empty lines. The name is empty for a comment or a lone id.
fn event_of(block: &str) -> Event {
    let mut event = Event::default();
    for (field, value) in block.lines().filter_map(|line| line.split_once(':')) {
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut event.name),
            "data" => event.data.push_str(value),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::{Event, event_of};

    #[test]
    fn comments_and_ids_are_no_events() {
        let event = Event { name: "evicted".into(), data: r#"{"by":{}}"#.into() };
        assert_eq!(event_of("id: 7-ended\nevent: evicted\ndata: {\"by\":{}}\n\n"), event);
        for other in [": still here\n\n", "id: 7\n\n", "\n\n", "nonsense\n\n"] {
            assert_eq!(event_of(other), Event::default(), "{other}");
        }
    }
}
