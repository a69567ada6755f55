//! The section `[region]`: this region, its peers, and the anchors of tenants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, web_address, within};

/// `[region]`: home regions. Without a number the deployment is the only one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RegionSettings {
    /// The number of this region: 1 to 255, in the ids of its sessions, never changed. Default 0: no regions.
    pub number: u8,
    /// The name of this region for people, such as `eu`.
    pub name: String,
    /// The number of the region that assigns the homes of subscribers and has the licenses, for every tenant
    /// without a line in `anchors`. Equal in all regions, and never changed. Absent: this region, if there are
    /// no peers.
    pub anchor: Option<u8>,
    /// The anchors of tenants whose anchor is not `anchor`: a table of tenants and numbers of regions. Equal in
    /// all regions. A tenant gets its line before its first request. Default empty.
    pub anchors: BTreeMap<String, u8>,
    /// The file with the Ed25519 private key, in PEM, that signs requests to peers. Read again every
    /// 2 s.
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
    /// Time limit for the beginning of a peer's answer, in milliseconds: 100 to 60,000. The connection is made within three
    /// quarters of the limit, and within 5 s. Default 5,000.
    pub forward_timeout_milliseconds: u64,
    /// The way of heartbeats to the home: `forward`, a request for each, or `batched`, plain heartbeats of up to 50 ms
    /// in one request. Default `forward`.
    #[schema(value_type = String)]
    pub heartbeats: HeartbeatForwarding,
    /// Admissions of devices while no connection to the home of the subscriber can be made: `deny` (default) admits no
    /// device; `allow` lets every node of the region admit alone, within the last known limit or 1, and marks the
    /// admissions on record. Licenses, capacities and groups are always denied.
    #[schema(value_type = String)]
    pub when_home_down: WhenHomeDown,
    /// The other regions, each a table `[[region.peers]]` with `number`, `name`, `url` (`http` or `https`,
    /// without path) and `public_key_file` (1 to 4 Ed25519 keys in PEM, read again every 2 s). Default none.
    pub peers: Vec<PeerSettings>,
}

/// The way of heartbeats to the home of their session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeartbeatForwarding {
    /// Each heartbeat is a request.
    #[default]
    Forward,
    /// A request carries the plain heartbeats of a short time.
    Batched,
}

/// The treatment of devices while the home of their subscriber is unreachable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenHomeDown {
    /// No device is admitted.
    #[default]
    Deny,
    /// Every node admits by its own memory, without knowledge of sessions elsewhere, and marks the admissions on record.
    Allow,
}

/// Another region.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerSettings {
    /// The number of the region.
    pub number: u8,
    /// The name of the region for people.
    pub name: String,
    /// The address of the region's servers.
    pub url: String,
    /// The file with the public keys of the region.
    #[schema(value_type = String)]
    pub public_key_file: PathBuf,
}

impl Default for RegionSettings {
    fn default() -> Self {
        Self {
            number: 0,
            name: String::new(),
            anchor: None,
            anchors: BTreeMap::new(),
            key_file: None,
            forward_timeout_milliseconds: 5_000,
            heartbeats: HeartbeatForwarding::Forward,
            when_home_down: WhenHomeDown::Deny,
            peers: Vec::new(),
        }
    }
}

impl RegionSettings {
    pub(super) fn checks(&self) -> Vec<Checked> {
        if self.number == 0 {
            return vec![self.check_unused()];
        }
        let timeout = self.forward_timeout_milliseconds;
        let mut checks = vec![
            within("region.forward_timeout_milliseconds", timeout, 100..=60_000, "want 100 to 60,000"),
            self.check_name(),
            self.check_anchors(),
            self.check_numbers(),
            self.check_peers_differ(),
        ];
        checks.extend(self.peers.iter().map(|peer| web_address("region.peers", &peer.url)));
        checks.extend(self.peers.iter().map(PeerSettings::check_path));
        if !self.peers.is_empty() {
            checks.push(self.check_key());
        }
        checks
    }

    /// Refuses settings of a region without a number, so that a forgotten number is noticed.
    fn check_unused(&self) -> Checked {
        let has_others = self.anchor.is_some()
            || !self.anchors.is_empty()
            || !self.peers.is_empty()
            || self.when_home_down == WhenHomeDown::Allow;
        if !has_others {
            return Ok(());
        }
        let want = "want 1 to 255 beside other settings of the region";
        Err(InvalidSetting { key: "region.number", got: "0".into(), want })
    }

    fn check_name(&self) -> Checked {
        if !self.name.is_empty() && !self.name.chars().any(char::is_control) {
            return Ok(());
        }
        let want = "want a name without control characters";
        Err(InvalidSetting { key: "region.name", got: self.name.clone(), want })
    }

    fn check_key(&self) -> Checked {
        if self.key_file.is_some() {
            return Ok(());
        }
        let want = "want the file with the private key that signs requests to peers";
        Err(InvalidSetting { key: "region.key_file", got: "nothing".into(), want })
    }

    fn check_anchors(&self) -> Checked {
        if self.anchor.is_none() && !self.peers.is_empty() {
            let want = "want the number of a region, the same number in all regions";
            return Err(InvalidSetting { key: "region.anchor", got: "nothing".into(), want });
        }
        let is_region =
            |number: &u8| *number == self.number || self.peers.iter().any(|peer| peer.number == *number);
        let unknown = |key, got: u8| {
            let want = "want the number of this region or of a peer";
            Err(InvalidSetting { key, got: got.to_string(), want })
        };
        if let Some(anchor) = self.anchor.filter(|number| !is_region(number)) {
            return unknown("region.anchor", anchor);
        }
        match self.anchors.values().find(|number| !is_region(number)) {
            Some(anchor) => unknown("region.anchors", *anchor),
            None => Ok(()),
        }
    }

    /// Checks that each number names one region.
    fn check_numbers(&self) -> Checked {
        let mut numbers = BTreeSet::from([self.number]);
        for peer in &self.peers {
            let want = match peer.number {
                0 => "want numbers from 1 to 255",
                number if number == self.number => "want peers with other numbers than region.number",
                number if !numbers.insert(number) => "want each number once",
                _ => continue,
            };
            return Err(InvalidSetting { key: "region.peers", got: peer.number.to_string(), want });
        }
        Ok(())
    }

    /// Refuses two regions with one name, because commands name a region by the name, and two regions at one address.
    fn check_peers_differ(&self) -> Checked {
        let (mut names, mut urls) = (BTreeSet::from([self.name.as_str()]), BTreeSet::new());
        for peer in &self.peers {
            if !names.insert(&peer.name) {
                let want = "want each name once, region.name included";
                return Err(InvalidSetting { key: "region.peers", got: peer.name.clone(), want });
            }
            if !urls.insert(peer.url.trim_end_matches('/')) {
                let want = "want each URL once";
                return Err(InvalidSetting { key: "region.peers", got: peer.url.clone(), want });
            }
        }
        Ok(())
    }
}

impl PeerSettings {
    /// Checks that the address ends after host and port: the path of a forwarded request follows.
    fn check_path(&self) -> Checked {
        let after_scheme = self.url.split_once("://").map_or("", |(_, rest)| rest);
        if after_scheme.trim_end_matches('/').contains(['/', '?', '#']) {
            let want = "want a URL without path and query";
            return Err(InvalidSetting { key: "region.peers", got: self.url.clone(), want });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
