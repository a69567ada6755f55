//! A usage sink for tests: receives batches over plain HTTP, follows a test's plan for each answer, and
//! remembers every accepted batch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A reaction of the sink to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    /// Accepts the batch and answers with a status.
    Take(u16),
    /// Refuses the batch and answers with a status.
    Refuse(u16),
    /// Refuses the batch, answers with a status, and repeats the request's head in the body.
    RefuseAndRepeat(u16),
    /// Accepts a batch of one record, and refuses a larger batch with a status.
    TakeSingle(u16),
    /// Accepts the batch and closes the connection without an answer.
    TakeAndDrop,
    /// Accepts the batch and answers nothing before the sender's timeout.
    TakeAndHang,
    /// Closes the connection before reading the body.
    Drop,
}

/// An accepted batch, with its idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) key: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A usage record in the default format. The amount keeps its decimal notation.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) user_object_id: String,
    pub(crate) tenant_object_id: String,
    pub(crate) capacity_id: String,
    pub(crate) usage: Box<RawValue>,
    pub(crate) window_start_utc: String,
    pub(crate) window_end_utc: String,
    pub(crate) record_id: String,
}

type Plan = Box<dyn FnMut(&str) -> Do + Send>;

/// A running sink.
pub(crate) struct Sink {
    pub(crate) url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    taken: Mutex<Vec<Taken>>,
    plan: Mutex<Plan>,
}

impl Sink {
    /// Starts a sink. `plan` maps the idempotency key of each batch to a reaction.
    pub(crate) async fn open(plan: impl FnMut(&str) -> Do + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/usage", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared { taken: Mutex::default(), plan: Mutex::new(Box::new(plan)) });
        let task = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { url, shared, task }
    }

    /// Replaces the plan.
    pub(crate) fn follow(&self, plan: impl FnMut(&str) -> Do + Send + 'static) {
        *self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(plan);
    }

    /// Returns every accepted batch, duplicates included.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the batches accepted since the last call.
    pub(crate) fn take(&self) -> Vec<Taken> {
        std::mem::take(&mut *self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Taken {
    /// Parses the records of a batch in the default format.
    pub(crate) fn records(&self) -> Vec<Record> {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Record {
    /// Returns the amount in millionths, from the six decimal places.
    pub(crate) fn micros(&self) -> u64 {
        let (whole, places) = self.usage.get().split_once('.').expect("a decimal point");
        assert_eq!(places.len(), 6, "{}", self.usage);
        format!("{whole}{places}").parse().expect("digits")
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A sender may hang up at any time: an error here is harmless.
            let _ = converse(stream, &shared).await;
        });
    }
}

/// Serves one request, then closes the connection.
async fn converse(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut came = Vec::new();
    let head_end = loop {
        if let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut came).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&came[..head_end]).into_owned();
    let key = header(&head, "idempotency-key");
    let what = (shared.plan.lock().unwrap_or_else(PoisonError::into_inner))(&key);
    if what == Do::Drop {
        return Ok(());
    }
    let length: usize = header(&head, "content-length").parse().expect("a length");
    while came.len() < head_end + length {
        if stream.read_buf(&mut came).await? == 0 {
            return Ok(());
        }
    }
    let what = if let Do::TakeSingle(status) = what {
        if is_single(&came[head_end..]) { Do::Take(200) } else { Do::Refuse(status) }
    } else {
        what
    };
    if !matches!(what, Do::Refuse(_) | Do::RefuseAndRepeat(_)) {
        let body = String::from_utf8(came[head_end..].to_vec()).expect("text");
        let taken = Taken { key, head: head.clone(), body };
        shared.taken.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
    }
    match what {
        Do::Take(status) | Do::Refuse(status) | Do::RefuseAndRepeat(status) => {
            let repeated = if matches!(what, Do::RefuseAndRepeat(_)) { head.as_str() } else { "" };
            let said = format!("it is {status}{repeated}");
            let length = said.len();
            let answer =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{said}");
            stream.write_all(answer.as_bytes()).await
        }
        Do::TakeAndHang => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok(())
        }
        Do::TakeAndDrop | Do::Drop | Do::TakeSingle(_) => Ok(()),
    }
}

/// Returns whether a body in the default format has a single record.
fn is_single(body: &[u8]) -> bool {
    serde_json::from_slice::<Vec<Record>>(body).expect("records").len() == 1
}

/// Returns the value of a header, or an empty string if the request has no such header.
pub(crate) fn header(head: &str, name: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map_or(String::new(), |(_, value)| value.trim().to_owned())
}
