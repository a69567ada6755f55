//! The audit log of a server, folded.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The audit log, oldest record first.
#[derive(Debug)]
pub struct Audit {
    records: Vec<Value>,
}

impl Audit {
    /// Returns the log of records that the server lists newest first.
    #[must_use]
    pub fn from_newest_first(mut records: Vec<Value>) -> Self {
        records.reverse();
        Self { records }
    }

    /// Returns the number of admissions of `machine`.
    #[must_use]
    pub fn admissions(&self, machine: &str) -> usize {
        self.records.iter().filter(|record| is_of(record, machine, "admitted")).count()
    }

    /// Returns the reasons of the ends of the sessions of `machine`, in order.
    #[must_use]
    pub fn end_reasons(&self, machine: &str) -> Vec<&str> {
        let ends = self.records.iter().filter(|record| is_of(record, machine, "ended"));
        ends.map(|record| record["reason"].as_str().unwrap_or_default()).collect()
    }

    /// Returns the breaks of two promises: a holder has one live session at most, and a pool no more live sessions than its
    /// limit.
    #[must_use]
    pub fn broken_promises(&self) -> Vec<String> {
        let mut live: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut broken = Vec::new();
        for record in &self.records {
            let text = |name: &str| record[name].as_str().unwrap_or_default();
            let (pool, holder, session) = (text("pool"), text("holder"), text("session_id"));
            let holders = live.entry(pool).or_default();
            match text("action") {
                "admitted" => {
                    if !holders.insert(holder) {
                        broken.push(format!("{holder} got the seat {session} beside a live one"));
                    }
                    if holders.len() as u64 > record["limit"].as_u64().unwrap_or_default() {
                        broken.push(format!("the seat {session} of {holder} is above the limit of {pool}"));
                    }
                }
                "ended" if !holders.remove(holder) => {
                    broken.push(format!("the seat {session} of {holder} ended without an admission"));
                }
                _ => {}
            }
        }
        broken
    }
}

/// Returns true if a record tells `action` of `machine`.
fn is_of(record: &Value, machine: &str, action: &str) -> bool {
    record["action"] == action && record["holder"] == machine
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(action: &str, holder: &str, session: &str) -> Value {
        json!({"action": action, "pool": "p", "holder": holder, "session_id": session, "limit": 2})
    }

    #[test]
    fn a_second_seat_of_a_holder_and_a_seat_above_the_limit_are_found() {
        let mut records = vec![record("admitted", "m", "1"), record("admitted", "m", "2")];
        assert_eq!(Audit::from_newest_first(records.clone()).broken_promises().len(), 1);
        records = ["a", "b", "c"].map(|holder| record("admitted", holder, holder)).to_vec();
        assert_eq!(Audit::from_newest_first(records.clone()).broken_promises().len(), 1);
        records.insert(1, record("ended", "c", "c"));
        let audit = Audit::from_newest_first(records);
        assert!(audit.broken_promises().is_empty(), "{audit:?}");
    }
}
