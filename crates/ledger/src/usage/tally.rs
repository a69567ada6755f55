//! What sessions used in each of many windows. That is sessions times windows, so there is a bound on it,
//! and whoever else is on the thread gets a turn.

use std::ops::Range;

use seatkeeper_core::Metered;

use super::books::WindowBooks;

/// Sessions times the windows in which each was live, that are tallied at once: some seconds of one thread.
pub const TALLY_MAX: u64 = 50_000_000;

/// To read a session takes about as long as to tally it in so many windows.
const READING: u64 = 100;

/// After so much work others get a turn: less than a millisecond of it.
const TURN: u64 = 10_000;

/// Counts work, and gives others a turn after some of it: what comes from the database is often there already,
/// and then to wait for it is none.
#[derive(Default)]
pub(super) struct Turns {
    work: u64,
}

impl Turns {
    /// Takes note that a session or a window was read.
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

/// Sessions that are to be tallied over the same windows.
#[derive(Default)]
pub(super) struct Tally {
    lives: Vec<(Metered, Range<usize>)>,
    work: u64,
}

impl Tally {
    /// Takes a session, and says whether all of them together are still within [`TALLY_MAX`].
    pub(super) fn take(&mut self, windows: &[WindowBooks], life: Metered) -> bool {
        let first = windows.partition_point(|books| books.window.ends() <= life.started);
        let end = windows.partition_point(|books| books.window.starts() < life.over);
        let live = first..end.max(first);
        self.work += READING + live.len() as u64;
        self.lives.push((life, live));
        self.work <= TALLY_MAX
    }

    /// Adds what each session used to the windows in which it was live.
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
