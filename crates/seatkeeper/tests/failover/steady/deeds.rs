//! The answers that one client of the storm was given, held against the record.

use std::collections::HashSet;
use std::sync::Arc;

use seatkeeper_load::Moment;

use super::caller::Storm;
use crate::support::books::Books;

/// The answers to one client of one pool.
#[derive(Debug)]
pub(super) struct Deeds {
    /// The holder's name on record; a device's there is a hash.
    holder: Option<Arc<str>>,
    pub(super) pool: Arc<str>,
    /// The reason on record of a session that was given back.
    pub(super) given_back_as: &'static str,
    pub(super) admitted: Vec<(Arc<str>, Moment)>,
    released: Vec<(Arc<str>, Moment)>,
    /// Sessions that an earlier request of the same client, late as it was, may have superseded.
    pub(super) contestable: HashSet<Arc<str>>,
}

impl Deeds {
    pub(super) fn new(holder: Option<Arc<str>>, pool: &str, given_back_as: &'static str) -> Self {
        let (admitted, released, contestable) = (Vec::new(), Vec::new(), HashSet::new());
        Self { holder, pool: pool.into(), given_back_as, admitted, released, contestable }
    }

    pub(super) fn admitted(&mut self, session: &Arc<str>, answered: Moment) {
        self.admitted.push((Arc::clone(session), answered));
    }

    pub(super) fn released(&mut self, session: &Arc<str>, answered: Moment) {
        self.released.push((Arc::clone(session), answered));
    }

    /// Fails the test unless all that was answered, and that `storm` may not have forgotten, is on record. Returns how
    /// many admissions are.
    pub(super) fn are_on_record(&self, books: &Books, storm: &Storm) -> usize {
        let lasting = |answers: &Vec<(Arc<str>, Moment)>| {
            let lasting = answers.iter().filter(|(_, answered)| !storm.may_forget(*answered));
            lasting.map(|(session, _)| Arc::clone(session)).collect::<Vec<_>>()
        };
        let (admitted, released) = (lasting(&self.admitted), lasting(&self.released));
        for session in &admitted {
            let story = books.story(session);
            assert_eq!(story.pool, *self.pool, "{session} of {:?}", self.holder);
            assert!(
                self.holder.as_deref().is_none_or(|holder| holder == story.holder),
                "{session}: {story:?}"
            );
        }
        for session in released.iter().filter(|session| !self.contestable.contains(*session)) {
            let reason = books.story(session).reason();
            assert_eq!(reason, Some(self.given_back_as), "{session} of {:?}", self.holder);
        }
        admitted.len()
    }
}
