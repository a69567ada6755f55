//! The open event streams of callers on this node.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::key::Key;

/// Counts the open event streams of each caller. A clone shares the counts.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<Key, usize>>>);

/// The place of an open event stream among the streams of its caller. A dropped permit frees the place.
pub(crate) struct StreamPermit {
    streams: Streams,
    key: Key,
}

impl Streams {
    /// Counts a stream of `key`. Returns `None` if `key` has `max` open streams.
    pub(super) fn open(&self, key: Key, max: usize) -> Option<StreamPermit> {
        let mut open = self.0.lock();
        let count = open.get(&key).copied().unwrap_or_default();
        if count >= max {
            return None;
        }
        open.insert(key, count + 1);
        Some(StreamPermit { streams: self.clone(), key })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.streams.0.lock().entry(self.key) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_opens_up_to_the_maximum_and_leaves_nothing_behind() {
        let streams = Streams::default();
        let (ann, bob) = (Key([1; 16]), Key([2; 16]));
        let first = streams.open(ann, 2).unwrap();
        let second = streams.open(ann, 2).unwrap();
        assert!(streams.open(ann, 2).is_none());
        assert!(streams.open(bob, 0).is_none());
        let other = streams.open(bob, 2).unwrap();
        drop(first);
        let third = streams.open(ann, 2).unwrap();
        assert_eq!(streams.0.lock().len(), 2);
        drop((second, third, other));
        assert!(streams.0.lock().is_empty());
    }
}
