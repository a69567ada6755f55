//! Tallies the usage of sessions in many windows.
//!
//! The work is sessions times windows. [`TALLY_MAX`] bounds the work, and [`Turns`] yields to other tasks on
//! the thread.

use std::ops::Range;

use seatkeeper_core::Metered;

use super::books::WindowBooks;

/// The maximum number of pairs of a session and a window in one tally: some seconds of one thread.
pub const TALLY_MAX: u64 = 50_000_000;

/// Reading a session takes about as long as tallying a session in 100 windows.
const READING: u64 = 100;

/// Work between two yields to other tasks: less than a millisecond.
const TURN: u64 = 10_000;

/// Counts work and yields to other tasks after each [`TURN`]. Rows from the database are often ready at once,
/// so awaiting them does not yield.
#[derive(Default)]
pub(super) struct Turns {
    work: u64,
}

impl Turns {
    /// Counts the reading of a session or a window.
    pub(super) async fn read(&mut self) {
        self.worked(READING).await;
    }

    async fn worked(&mut self, work: u64) {
        self.work += work;
        if self.work >= TURN {
            self.work = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Sessions to tally over the same windows.
#[derive(Default)]
pub(super) struct Tally {
    lives: Vec<(Metered, Range<usize>)>,
    work: u64,
}

impl Tally {
    /// Adds a session. Returns `true` while the total work stays within [`TALLY_MAX`].
    pub(super) fn take(&mut self, windows: &[WindowBooks], life: Metered) -> bool {
        let first = windows.partition_point(|books| books.window.ends() <= life.started);
        let end = windows.partition_point(|books| books.window.starts() < life.over);
        let live = first..end.max(first);
        self.work += READING + live.len() as u64;
        self.lives.push((life, live));
        self.work <= TALLY_MAX
    }

    /// Adds the usage of each session to the windows in which the session was live.
    pub(super) async fn add_to(self, windows: &mut [WindowBooks]) {
        let mut turns = Turns::default();
        for (life, live) in self.lives {
            for books in &mut windows[live] {
                books.held = books.held + life.used_in(books.window);
                turns.worked(1).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
