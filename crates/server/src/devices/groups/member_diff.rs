//! The difference between two looks at the members of a group.

use std::collections::BTreeSet;

use seatkeeper_core::SessionId;

/// The members of a group at one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberSet {
    pub(super) host: Option<SessionId>,
    pub(super) members: BTreeSet<SessionId>,
}

/// The changes between two looks. A member that came and went in between is not seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemberDiff {
    pub(super) joined: Vec<SessionId>,
    pub(super) left: Vec<SessionId>,
    /// The new host, if another member is the host.
    pub(super) host: Option<SessionId>,
}

impl MemberDiff {
    pub(super) fn between(before: &MemberSet, now: &MemberSet) -> Self {
        Self {
            joined: now.members.difference(&before.members).copied().collect(),
            left: before.members.difference(&now.members).copied().collect(),
            host: now.host.filter(|_| now.host != before.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use seatkeeper_core::{Bucket, Region, RegistryTime};

    use super::*;

    fn id(entropy: u64) -> SessionId {
        let bucket = Bucket::all().next().unwrap();
        SessionId::mint(RegistryTime::from_millis(1), bucket, Region::default(), entropy)
    }

    fn set(host: u64, members: &[u64]) -> MemberSet {
        MemberSet { host: Some(id(host)), members: members.iter().copied().map(id).collect() }
    }

    #[test]
    fn a_diff_names_each_change_once() {
        let diff = MemberDiff::between(&set(1, &[1, 2]), &set(2, &[2, 3]));
        assert_eq!(diff, MemberDiff { joined: vec![id(3)], left: vec![id(1)], host: Some(id(2)) });
        let none = MemberDiff { joined: vec![], left: vec![], host: None };
        assert_eq!(MemberDiff::between(&set(1, &[1, 2]), &set(1, &[1, 2])), none);
        let over = MemberDiff::between(&set(1, &[1]), &MemberSet::default());
        assert_eq!(over, MemberDiff { left: vec![id(1)], ..none });
    }
}
