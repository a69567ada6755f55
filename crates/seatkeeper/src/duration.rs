//! Durations typed by people: `90s`, `5m`, `1h`, `30d`.

use std::time::Duration;

/// The longest duration: a century, which every clock can add to the present time.
const MAX: Duration = Duration::from_secs(36_500 * 86_400);

/// The error of a text that is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("want a whole number and a unit, 36500d at most: 90s, 5m, 1h or 30d")]
pub(crate) struct NotADuration;

/// Parses a whole number and a unit: s, m, h or d. A duration of more than 36,500 days is an error.
pub(crate) fn parse(text: &str) -> Result<Duration, NotADuration> {
    let unit = text.chars().next_back().ok_or(NotADuration)?;
    let seconds_each: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(NotADuration),
    };
    let count: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| NotADuration)?;
    let seconds = count.checked_mul(seconds_each).ok_or(NotADuration)?;
    let duration = Duration::from_secs(seconds);
    if duration <= MAX { Ok(duration) } else { Err(NotADuration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h", 3_600), ("36500d", 3_153_600_000), ("0s", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_duration() {
        let overflows = "18446744073709551615d";
        for text in ["", "h", "1", "-1h", "1 h", "1.5h", "1w", "1ss", "ü", "36501d", overflows] {
            assert_eq!(parse(text), Err(NotADuration), "{text}");
        }
    }
}
