//! The open event streams of callers on this node.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::key::Key;

/// Counts the open event streams of each caller. A clone shares the counts.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<Key, StreamCount>>>);

/// A number of event streams, and of the sessions that they are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCount {
    pub(super) streams: usize,
    pub(super) sessions: usize,
}

/// The place of an open event stream among the streams of its caller. A dropped permit frees the place.
pub(crate) struct StreamPermit {
    streams: Streams,
    key: Key,
    sessions: usize,
}

impl Streams {
    /// Counts a stream of `key` about `sessions`. Returns `Err` with the limit that the streams of `key` would exceed, of
    /// streams or of sessions.
    pub(super) fn open(&self, key: Key, sessions: usize, max: StreamCount) -> Result<StreamPermit, usize> {
        let mut open = self.0.lock();
        let before = open.get(&key).copied().unwrap_or_default();
        let count = StreamCount { streams: before.streams + 1, sessions: before.sessions + sessions };
        if count.streams > max.streams {
            return Err(max.streams);
        }
        if count.sessions > max.sessions {
            return Err(max.sessions);
        }
        open.insert(key, count);
        Ok(StreamPermit { streams: self.clone(), key, sessions })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.streams.0.lock().entry(self.key) {
            count.get_mut().streams -= 1;
            count.get_mut().sessions -= self.sessions;
            if count.get().streams == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Key = Key([1; 16]);
    const BOB: Key = Key([2; 16]);
    const MAX: StreamCount = StreamCount { streams: 2, sessions: 5 };

    /// Opens a stream. Returns the exceeded limit in place of a permit.
    fn open(streams: &Streams, key: Key, sessions: usize) -> Result<StreamPermit, usize> {
        streams.open(key, sessions, MAX)
    }

    #[test]
    fn a_caller_opens_up_to_the_maximum_and_leaves_nothing_behind() {
        let streams = Streams::default();
        let first = open(&streams, ANN, 1).ok().unwrap();
        let second = open(&streams, ANN, 1).ok().unwrap();
        assert_eq!(open(&streams, ANN, 1).err(), Some(2));
        assert_eq!(streams.open(BOB, 1, StreamCount::default()).err(), Some(0));
        let other = open(&streams, BOB, 1).ok().unwrap();
        drop(first);
        let third = open(&streams, ANN, 1).ok().unwrap();
        assert_eq!(streams.0.lock().len(), 2);
        drop((second, third, other));
        assert!(streams.0.lock().is_empty());
    }

    #[test]
    fn the_streams_of_a_caller_are_about_the_maximum_of_sessions_together() {
        let streams = Streams::default();
        let first = open(&streams, ANN, 3).ok().unwrap();
        assert_eq!(open(&streams, ANN, 3).err(), Some(5));
        let second = open(&streams, ANN, 2).ok().unwrap();
        let other = open(&streams, BOB, 5).ok().unwrap();
        drop(first);
        let third = open(&streams, ANN, 3).ok().unwrap();
        assert_eq!(streams.0.lock()[&ANN], StreamCount { streams: 2, sessions: 5 });
        drop((second, third, other));
        assert!(streams.0.lock().is_empty());
    }
}
