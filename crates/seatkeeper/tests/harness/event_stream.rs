//! A reader of server-sent events, in the place of a player.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use super::{Answer, Client};

/// Timeout for the next event. Shorter than the default TTL, after which a server polls the state: so a test
/// fails if only the poll delivers an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout for the next comment: twice the keep-alive interval.
const COMMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// An open stream of server-sent events.
#[derive(Debug)]
pub(crate) struct EventStream {
    response: Response,
    unread: String,
    /// The id of the latest block, to resume from with `Last-Event-ID`.
    pub(crate) last_id: String,
}

/// An event with its data.
#[derive(Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// The fields between two empty lines of the stream.
#[derive(Debug, Default)]
struct Block {
    comment: Option<String>,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
}

impl EventStream {
    /// Returns the headers of the response.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Opens a stream and waits for the first id, from which on the server watches. Returns `Err` with the
    /// response if the status is not 200.
    pub(crate) async fn open(client: &Client, path: &str, last_id: Option<&str>) -> Result<Self, Answer> {
        let mut stream = Self::get(client, path, last_id).await?;
        let begun = timeout(EVENT_TIMEOUT, stream.block()).await.expect("it begins in time");
        let begun = begun.expect("a first id");
        assert!(begun.id.is_some() && begun.name.is_none(), "{begun:?}");
        Ok(stream)
    }

    /// Opens a stream that `path` shares with the sessions `with`, which the server watches from its answer on. Returns `Err`
    /// with the response if the status is not 200.
    pub(crate) async fn open_shared(client: &Client, path: &str, with: &[&Value]) -> Result<Self, Answer> {
        let with: Vec<_> = with.iter().map(|session| session.as_str().expect("an id")).collect();
        // The id of an event about a single session counts for nothing.
        Self::get(client, &format!("{path}?with={}", with.join(",")), Some("1-ended")).await
    }

    async fn get(client: &Client, path: &str, last_id: Option<&str>) -> Result<Self, Answer> {
        let mut request = client.http.get(format!("{}{path}", client.url())).bearer_auth(&client.token);
        if let Some(id) = last_id {
            request = request.header("Last-Event-ID", id);
        }
        let response = request.send().await.expect("an answer");
        if response.status() != StatusCode::OK {
            return Err(Answer::read(response).await.expect("an answer"));
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self { response, unread: String::new(), last_id: String::new() })
    }

    /// Returns the next event, or `None` if the server has closed the stream.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        timeout(EVENT_TIMEOUT, self.event()).await.expect("an event in time")
    }

    async fn event(&mut self) -> Option<Heard> {
        loop {
            let Block { name, data, .. } = self.block().await?;
            if let Some(name) = name {
                let data = serde_json::from_str(&data.unwrap_or_default()).expect("JSON");
                return Some(Heard { name, data });
            }
        }
    }

    /// Returns the next comment.
    pub(crate) async fn comment(&mut self) -> String {
        let block = timeout(COMMENT_TIMEOUT, self.block()).await.expect("a comment in time");
        block.expect("a stream that goes on").comment.expect("a comment")
    }

    async fn block(&mut self) -> Option<Block> {
        let whole = self.read_block().await?;
        let mut block = Block::default();
        for line in whole.lines() {
            let (field, value) = line.split_once(':').expect("a field");
            let value = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
            match field {
                "" => block.comment = value,
                "event" => block.name = value,
                "data" => block.data = value,
                "id" => block.id = value,
                other => panic!("unknown field of an event: {other}"),
            }
        }
        if let Some(id) = &block.id {
            self.last_id.clone_from(id);
        }
        Some(block)
    }

    async fn read_block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let block = block.to_owned();
                self.unread = rest.to_owned();
                return Some(block);
            }
            // A broken connection counts as the end of the stream.
            let chunk = self.response.chunk().await.ok().flatten()?;
            self.unread.push_str(std::str::from_utf8(&chunk).expect("whole events"));
        }
    }
}
