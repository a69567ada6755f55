//! The rules of a plan for groups that watch together.

use seatkeeper_core::named_enum;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::row::Fields;

named_enum! {
    /// The users whose devices may join a group.
    #[derive(PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GroupScope else "must be `same_user` or `any_user`" {
        /// The devices of the host's user alone.
        #[default]
        SameUser = "same_user",
        /// The devices of every user of the tenant. A guest needs no screen of its own.
        AnyUser = "any_user",
    }
}

/// The rules of a plan for groups that watch together. The default allows no groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRules {
    /// Most members of a group; 0 allows no groups. At most [`GROUP_MEMBERS_MAX`](seatkeeper_core::GROUP_MEMBERS_MAX).
    #[serde(rename = "group_members_max")]
    pub members_max: u32,
    /// The users whose devices may join.
    #[serde(rename = "group_scope")]
    pub scope: GroupScope,
    /// `true`: a member that watches other content than the host leaves the group.
    #[serde(rename = "group_same_content")]
    pub same_content: bool,
}

impl GroupRules {
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Self, Error> {
        Ok(Self {
            members_max: fields.small("group_members_max")?,
            scope: fields.named("group_scope")?,
            same_content: fields.value("group_same_content")?,
        })
    }
}
