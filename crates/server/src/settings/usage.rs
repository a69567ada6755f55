//! The section `[usage]`: the interval of metering, and the sink of usage records.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, Secret, check_token, web_address, within};

/// `[usage]`: metering of capacities, and the sink of usage records.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UsageSettings {
    /// The URL that usage records are sent to, by `POST`. Absent: no records are made. The next window then
    /// starts at the end of the last window, and the first window at the first session on record.
    pub sink_url: Option<String>,
    /// The bearer token for the sink: at least one character, visible ASCII only.
    #[schema(value_type = Option<String>)]
    pub sink_token: Option<Secret>,
    /// The file with the token. An alternative to `sink_token`. A changed file is read again within seconds;
    /// an invalid file is logged, and the old token stays in use.
    #[schema(value_type = Option<String>)]
    pub sink_token_file: Option<PathBuf>,
    /// `json` (default): an array of records; or `cloudevents`: a batch of CloudEvents.
    #[schema(value_type = String)]
    pub sink_format: SinkFormat,
    /// Time limit of a delivery, in seconds: 1 to 300. Default 10.
    pub sink_timeout_seconds: u64,
    /// The statuses by which the sink reports a batch as a duplicate: each 400 to 499. Default `[409]`.
    pub duplicate_statuses: Vec<u16>,
    /// The `source` of CloudEvents: 1 to 255 characters. Default `seatkeeper`.
    pub event_source: String,
    /// Interval at which usage is recorded, in seconds: 1 to 86,400. Default 60.
    pub emission_interval_seconds: u64,
    /// Maximum of records in a delivery: 1 to 10,000. Default 1,000.
    pub batch_records: u64,
}

/// The format of usage records for the sink.
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

    fn check_token(&self) -> Checked {
        let keys = ["usage.sink_token", "usage.sink_token_file"];
        check_token(keys, self.sink_token.as_ref(), self.sink_token_file.as_ref())
    }
}

fn check_source(source: &str) -> Result<(), InvalidSetting> {
    let fits = (1..=255).contains(&source.chars().count()) && !source.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    let want = "want 1 to 255 characters, none of them a control character";
    Err(InvalidSetting { key: "usage.event_source", got: source.into(), want })
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
                .map_err(|invalid_setting| invalid_setting.key)
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
