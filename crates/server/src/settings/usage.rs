use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, Misfit, Secret, web_address, within};

/// `[usage]`: who is told for how long capacities were held.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsageSettings {
    /// Where usage records are sent, by `POST`. Absent: nowhere, and then none are made; the next window
    /// starts where the last one ended; the first one, with the first session on record.
    pub sink_url: Option<String>,
    /// The bearer token that the sink wants: at least one character, all of them visible ASCII.
    #[schema(value_type = Option<String>)]
    pub sink_token: Option<Secret>,
    /// The file that holds that token, instead of `sink_token`. It is read again within seconds when it changes; what cannot
    /// be used is logged, and the old one goes on.
    #[schema(value_type = Option<String>)]
    pub sink_token_file: Option<PathBuf>,
    /// `json` (default): an array of records; or `cloudevents`: a batch of CloudEvents.
    #[schema(value_type = String)]
    pub sink_format: SinkFormat,
    /// How long one delivery may take, in seconds: 1 to 300. Default 10.
    pub sink_timeout_seconds: u64,
    /// The statuses by which the sink says that it has a batch already: each 400 to 499. Default `[409]`.
    pub duplicate_statuses: Vec<u16>,
    /// The `source` of CloudEvents: 1 to 255 characters. Default `seatkeeper`.
    pub event_source: String,
    /// How often usage is put on record, in seconds: 1 to 86,400. Default 60.
    pub emission_interval_seconds: u64,
    /// How many records a delivery has at most: 1 to 10,000. Default 1,000.
    pub batch_records: u64,
}

/// How usage records are written for the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SinkFormat {
    /// A JSON array.
    #[default]
    Json,
    /// A batch of CloudEvents 1.0 in JSON.
    CloudEvents,
}

impl Default for UsageSettings {
    fn default() -> Self {
        Self {
            sink_url: None,
            sink_token: None,
            sink_token_file: None,
            sink_format: SinkFormat::default(),
            sink_timeout_seconds: 10,
            duplicate_statuses: vec![409],
            event_source: "seatkeeper".into(),
            emission_interval_seconds: 60,
            batch_records: 1_000,
        }
    }
}

impl UsageSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        let status = |&status: &u16| {
            within("usage.duplicate_statuses", status.into(), 400..=499, "want statuses from 400 to 499")
        };
        let mut checks: Vec<_> = self.duplicate_statuses.iter().map(status).collect();
        checks.extend([
            self.sink_url.as_deref().map_or(Ok(()), |url| web_address("usage.sink_url", url)),
            self.check_token(),
            within("usage.sink_timeout_seconds", self.sink_timeout_seconds, 1..=300, "want 1 to 300 seconds"),
            check_source(&self.event_source),
            within(
                "usage.emission_interval_seconds",
                self.emission_interval_seconds,
                1..=86_400,
                "want 1 to 86,400 seconds",
            ),
            within("usage.batch_records", self.batch_records, 1..=10_000, "want 1 to 10,000 records"),
        ]);
        checks
    }

    /// There is at most one token, and it is one.
    fn check_token(&self) -> Checked {
        if self.sink_token.is_some() && self.sink_token_file.is_some() {
            return Err(Misfit {
                key: "usage.sink_token_file",
                got: "a file beside a token".into(),
                want: "want usage.sink_token or usage.sink_token_file, and not both",
            });
        }
        self.sink_token.as_ref().map_or(Ok(()), check_token)
    }
}

/// Whether a header can carry it.
pub(crate) fn is_sink_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn check_token(token: &Secret) -> Result<(), Misfit> {
    let token = token.reveal();
    if is_sink_token(token) {
        return Ok(());
    }
    let want = "want visible ASCII characters: no space, no line break, and not nothing";
    Err(Misfit { key: "usage.sink_token", got: format!("{} bytes", token.len()), want })
}

fn check_source(source: &str) -> Result<(), Misfit> {
    let fits = (1..=255).contains(&source.chars().count()) && !source.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    let want = "want 1 to 255 characters, none of them a control character";
    Err(Misfit { key: "usage.event_source", got: source.into(), want })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_that_a_header_can_carry() {
        let checked = |token: &str| {
            let sink_token = Some(Secret::new(token));
            UsageSettings { sink_token, ..UsageSettings::default() }
                .check_token()
                .map_err(|misfit| misfit.key)
        };
        for token in ["x", "abc.DEF-_~+/=", "!\"#:;@"] {
            assert_eq!(checked(token), Ok(()), "{token}");
            assert!(reqwest::header::HeaderValue::from_str(&format!("Bearer {token}")).is_ok());
        }
        for token in ["", "open-sesame\n", "a b", "a\tb", "a\0", "\u{7f}", "schlüssel"] {
            assert_eq!(checked(token), Err("usage.sink_token"), "{token:?}");
        }
    }
}
