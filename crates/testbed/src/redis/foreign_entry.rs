//! Undecodable journal entries.

use super::Redis;

/// An entry of an unknown kind in a bucket's journal.
#[derive(Clone, Debug)]
pub struct ForeignEntry {
    /// Key of the bucket's head.
    pub head: String,
    /// Key of the bucket's journal.
    pub journal: String,
    /// Id of the entry.
    pub id: String,
}

impl Redis {
    /// Appends an entry of an unknown kind to the journal of a served bucket.
    pub fn add_foreign_entry(&self, bucket: u16) -> ForeignEntry {
        let pattern = format!("*}}{bucket:03}:head");
        let heads: Vec<String> = self.ask(redis::cmd("KEYS").arg(pattern).take());
        let head = heads.into_iter().next().expect("the server has the bucket");
        let journal = head.replace(":head", ":journal");
        let script = include_str!("foreign_entry.lua");
        let id = self.ask(redis::cmd("EVAL").arg(script).arg(2).arg(&head).arg(&journal).take());
        ForeignEntry { head, journal, id }
    }

    /// Deletes an entry from its journal.
    pub fn delete_entry(&self, entry: &ForeignEntry) {
        let deleted: u64 = self.ask(redis::cmd("XDEL").arg(&entry.journal).arg(&entry.id).take());
        assert_eq!(deleted, 1, "{entry:?}");
    }
}
