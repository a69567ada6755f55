//! The answers to a client of the storm, for the comparison with the record.

use std::collections::HashSet;
use std::sync::Arc;

use seatkeeper_load::Moment;

use super::caller::Storm;
use crate::support::books::Books;

/// The answers to a client of a pool.
#[derive(Debug)]
pub(super) struct Deeds {
    /// The holder's name in the record; `None` for a device, recorded as a hash.
    holder: Option<Arc<str>>,
    pub(super) pool: Arc<str>,
    /// The recorded reason for the end of a released session.
    pub(super) given_back_as: &'static str,
    pub(super) admitted: Vec<(Arc<str>, Moment)>,
    pub(super) released: Vec<(Arc<str>, Moment)>,
    /// Sessions that may have been superseded by a late request of the client.
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

    /// Fails the test unless every answer is in the record, except answers that `storm` may have forgotten.
    /// Returns the number of recorded admissions.
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
