//! The vectors as values. `sdk/vectors/README.md` defines each verb.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The name of a vector or a fleet.
#[derive(Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

/// One holder, step by step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    pub(crate) name: String,
    #[serde(default = "half")]
    pub(crate) jitter: Jitters,
    #[serde(default)]
    pub(crate) given: Given,
    pub(crate) steps: Vec<Verb>,
}

/// One number for every step, or a list that repeats.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Jitters {
    One(f64),
    Many(Vec<f64>),
}

fn half() -> Jitters {
    Jitters::One(0.5)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Given {
    pub(crate) license_key: String,
    pub(crate) machine_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) client: Option<Map<String, Value>>,
    pub(crate) device: Option<GivenDevice>,
    #[serde(deserialize_with = "optional_wait")]
    pub(crate) wait: Option<GivenWait>,
    #[serde(deserialize_with = "span")]
    pub(crate) patience: Duration,
}

/// A device that asks for a screen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenDevice {
    pub(crate) device_id: String,
    pub(crate) device_type: String,
    pub(crate) device_name: Option<String>,
    pub(crate) session_id: Option<String>,
    pub(crate) replace_session_id: Option<String>,
}

pub(crate) enum GivenWait {
    For(Duration),
    Forever,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            license_key: "K".to_owned(),
            machine_id: "m".to_owned(),
            instance_id: None,
            user_agent: None,
            metadata: None,
            client: None,
            device: None,
            wait: None,
            patience: Duration::from_secs(10),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Verb {
    Acquired(Map<String, Value>),
    Beat(Map<String, Value>),
    Expect(Expect),
    Answer(Answer),
    Fail(String),
    Cancelled(bool),
    #[serde(deserialize_with = "span")]
    Advance(Duration),
    #[serde(deserialize_with = "span")]
    Sleep(Duration),
    #[serde(deserialize_with = "span")]
    Freeze(Duration),
    Wall(String),
    Event(Notice),
    Call(String),
    Token(String),
    State(Map<String, Value>),
    #[serde(deserialize_with = "span")]
    NoRequestFor(Duration),
    Callback(Vec<String>),
    Finish(String),
    Session(Held),
}

/// The session of a held seat.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) license_id: Option<String>,
    pub(crate) seats: Option<(u32, u32)>,
    /// The path of the event stream.
    pub(crate) events: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) json: Option<Value>,
    #[serde(default = "yes")]
    pub(crate) bearer: bool,
    #[serde(default, deserialize_with = "optional_span")]
    pub(crate) at: Option<Duration>,
    #[serde(default, deserialize_with = "optional_span")]
    pub(crate) timeout: Option<Duration>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) json: Option<Value>,
    pub(crate) text: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notice {
    pub(crate) session: String,
    /// `None` if the stream of the session is over.
    pub(crate) reason: Option<String>,
    pub(crate) by: Option<String>,
}

/// Many holders and one outage.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fleet {
    pub(crate) name: String,
    pub(crate) holders: usize,
    pub(crate) seed: u64,
    /// The answer to an acquire.
    pub(crate) grant: Map<String, Value>,
    #[serde(deserialize_with = "span")]
    pub(crate) outage_from: Duration,
    #[serde(deserialize_with = "span")]
    pub(crate) outage_to: Duration,
    /// The failure of each request during the outage; `503` is an answer.
    pub(crate) outage: String,
    #[serde(deserialize_with = "span")]
    pub(crate) until: Duration,
    /// The share of the holders whose first request after the outage may fall into one 100 ms.
    pub(crate) bucket_share_max: f64,
    /// The first requests after the outage spread over at least this.
    #[serde(deserialize_with = "span")]
    pub(crate) spread_min: Duration,
    pub(crate) tries_per_interval_max: usize,
    /// The state of each holder at `until`.
    pub(crate) state: String,
}

/// Reads `250ms`, `10s`, `5m`, `3h` or `400d`.
pub(crate) fn parse_span(text: &str) -> Duration {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or_else(|| panic!("no unit: {text}"));
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().unwrap_or_else(|_| panic!("no number: {text}"));
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        other => panic!("no unit of time: {other}"),
    };
    Duration::from_millis((number * seconds * 1_000.0).round() as u64)
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    String::deserialize(deserializer).map(|text| parse_span(&text))
}

fn optional_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}

fn optional_wait<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<GivenWait>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wait = if text == "forever" { GivenWait::Forever } else { GivenWait::For(parse_span(&text)) };
    Ok(Some(wait))
}
