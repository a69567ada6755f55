//! Models a ledger that forgets: a lagging PostgreSQL standby becomes the primary, and confirmed commits and
//! raises are lost.
//!
//! The model has a bucket in Redis, and clients asking for a seat. An epoch is a counter with a random word.
//! The words of two raises always differ, and a later word may be greater or smaller. Rebuilds may freeze at
//! any point, and any number may be in progress. The model omits journals and leases.

use stateright::{Model, Property};

/// Two clients, as a bit set.
const CLIENTS: u8 = 2;

/// Limit in rounds of [`Stores::rebuild_once`] until Redis agrees with the ledger again.
const RECOVERS_WITHIN: usize = 8;

/// The rules in force. A test can switch each rule off.
#[derive(Clone, Copy, Debug)]
pub struct LedgerRules {
    /// An epoch has a random word beside its counter. Otherwise a forgotten epoch is issued a second time.
    pub epoch_has_word: bool,
    /// The row of a bucket names the ledger behind the latest raise. Otherwise a changed ledger goes
    /// unnoticed.
    pub row_names_ledger: bool,
}

impl LedgerRules {
    /// Every rule.
    pub const ALL: Self = Self { epoch_has_word: true, row_names_ledger: true };
}

/// The extent of a walk.
#[derive(Clone, Copy, Debug)]
pub struct ForgetfulLedger {
    /// The number of promotions of a standby.
    pub promotions: u8,
    /// The number of times that Redis forgets.
    pub losses: u8,
    /// The number of raises.
    pub raises: u8,
    /// The rules in force.
    pub rules: LedgerRules,
}

/// An epoch, ordered by counter, then by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Epoch {
    counter: u8,
    word: i8,
}

/// The ledger on a single PostgreSQL server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ledger {
    epoch: Epoch,
    /// The identity of the ledger at the latest raise.
    raised_by: u8,
    /// The clients on record.
    record: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Head {
    Missing,
    Rebuilding(Epoch),
    Serving(Epoch),
}

/// A rebuild after the raise of the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rebuild {
    epoch: Epoch,
    stage: Stage,
}

/// The latest step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Raised,
    Begun,
    Filled,
}

/// The state of the model: the ledger with its standby, and Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stores {
    ledger: Ledger,
    /// The lagging standby.
    standby: Ledger,
    /// The identity of the ledger: system identifier and timeline.
    ledger_identity: u8,
    head: Head,
    /// The live clients in Redis.
    live: u8,
    rebuilds: Vec<Rebuild>,
    words_above: i8,
    words_below: i8,
    promotions_left: u8,
    losses_left: u8,
    raises_left: u8,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerStep {
    /// Redis admits a client, and the ledger commits the admission.
    Admit(u8),
    /// The standby catches up.
    Replicate,
    /// The standby becomes the primary, on a new timeline.
    Promote,
    /// Redis forgets the bucket.
    Lose,
    /// A node with a need for a rebuild raises the epoch. The new word is greater or smaller than every word
    /// before.
    Raise(Word),
    /// A rebuild takes its next step, or aborts if refused.
    Proceed(usize),
}

/// The order of a new word among the earlier words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Greater than every earlier word.
    Greatest,
    /// Smaller than every earlier word.
    Smallest,
}

/// A bucket that no node would rebuild has exactly the sessions of the ledger.
pub const AGREES: &str = "a bucket that nobody would rebuild has what the ledger has";
/// Redis agrees with the ledger again after a bounded number of rebuilds.
pub const SETTLES: &str = "rebuilds come to an end";
/// A session outlives a promotion.
pub const OUTLIVES: &str = "a session outlives a promotion";

impl Model for ForgetfulLedger {
    type State = Stores;
    type Action = LedgerStep;

    fn init_states(&self) -> Vec<Stores> {
        let epoch = Epoch { counter: 1, word: 0 };
        let ledger = Ledger { epoch, raised_by: 0, record: 0 };
        vec![Stores {
            ledger,
            standby: ledger,
            ledger_identity: 0,
            head: Head::Serving(epoch),
            live: 0,
            rebuilds: Vec::new(),
            words_above: 0,
            words_below: 0,
            promotions_left: self.promotions,
            losses_left: self.losses,
            raises_left: self.raises,
        }]
    }

    fn actions(&self, stores: &Stores, steps: &mut Vec<LedgerStep>) {
        steps.extend((0..CLIENTS).map(LedgerStep::Admit));
        steps.extend([LedgerStep::Replicate, LedgerStep::Promote, LedgerStep::Lose]);
        steps.extend([Word::Greatest, Word::Smallest].map(LedgerStep::Raise));
        steps.extend((0..stores.rebuilds.len()).map(LedgerStep::Proceed));
    }

    fn next_state(&self, stores: &Stores, step: LedgerStep) -> Option<Stores> {
        let mut next = stores.clone();
        match step {
            LedgerStep::Admit(client) => next.admit(client)?,
            LedgerStep::Replicate => next.standby = next.ledger,
            LedgerStep::Promote => {
                next.promotions_left = next.promotions_left.checked_sub(1)?;
                next.ledger = next.standby;
                next.ledger_identity += 1;
            }
            LedgerStep::Lose => {
                next.losses_left = next.losses_left.checked_sub(1)?;
                (next.head, next.live) = (Head::Missing, 0);
            }
            LedgerStep::Raise(word) => {
                next.raises_left = next.raises_left.checked_sub(1)?;
                next.raise(word, self.rules)?;
            }
            LedgerStep::Proceed(rebuild) => next.proceed(rebuild),
        }
        // Rebuilds are interchangeable: sort them to merge symmetric states.
        next.rebuilds.sort_unstable();
        (next != *stores).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREES, |model: &Self, stores: &Stores| {
                stores.needs_rebuild(model.rules) || stores.live == stores.ledger.record
            }),
            Property::always(SETTLES, |model: &Self, stores: &Stores| stores.settles(model.rules)),
            Property::sometimes(OUTLIVES, |model: &Self, stores: &Stores| {
                !stores.needs_rebuild(model.rules) && stores.ledger_identity > 0 && stores.live > 0
            }),
        ]
    }
}

impl Stores {
    fn needs_rebuild(&self, rules: LedgerRules) -> bool {
        let is_anothers = self.ledger.raised_by != self.ledger_identity && rules.row_names_ledger;
        self.head != Head::Serving(self.ledger.epoch) || is_anothers
    }

    /// Admits a client. Script and commit both demand the epoch of the ledger.
    fn admit(&mut self, client: u8) -> Option<()> {
        let bit = 1 << client;
        (self.head == Head::Serving(self.ledger.epoch)).then_some(())?;
        ((self.live | self.ledger.record) & bit == 0).then_some(())?;
        self.live |= bit;
        self.ledger.record |= bit;
        Some(())
    }

    fn raise(&mut self, word: Word, rules: LedgerRules) -> Option<()> {
        self.needs_rebuild(rules).then_some(())?;
        let word = match word {
            _ if !rules.epoch_has_word => 0,
            Word::Greatest => {
                self.words_above += 1;
                self.words_above
            }
            Word::Smallest => {
                self.words_below -= 1;
                self.words_below
            }
        };
        let epoch = Epoch { counter: self.ledger.epoch.counter + 1, word };
        (self.ledger.epoch, self.ledger.raised_by) = (epoch, self.ledger_identity);
        self.rebuilds.push(Rebuild { epoch, stage: Stage::Raised });
        Some(())
    }

    fn proceed(&mut self, index: usize) {
        let Rebuild { epoch, stage } = self.rebuilds[index];
        let is_begun = self.head == Head::Rebuilding(epoch);
        let next = match stage {
            Stage::Raised if self.may_begin(epoch) => {
                self.head = Head::Rebuilding(epoch);
                Some(Stage::Begun)
            }
            Stage::Begun if is_begun => {
                self.live = self.ledger.record;
                Some(Stage::Filled)
            }
            Stage::Filled if is_begun => {
                self.head = Head::Serving(epoch);
                None
            }
            Stage::Raised | Stage::Begun | Stage::Filled => None,
        };
        match next {
            Some(stage) => self.rebuilds[index].stage = stage,
            None => drop(self.rebuilds.remove(index)),
        }
    }

    /// Returns `true` if a rebuild may begin: from a lower epoch, from a missing head, or again from its own
    /// epoch.
    fn may_begin(&self, epoch: Epoch) -> bool {
        match self.head {
            Head::Missing => true,
            Head::Rebuilding(present) => present <= epoch,
            Head::Serving(present) => present < epoch,
        }
    }

    /// Returns `true` if rebuilds settle within [`RECOVERS_WITHIN`] rounds, without further faults.
    fn settles(&self, rules: LedgerRules) -> bool {
        let mut stores = self.clone();
        for _ in 0..RECOVERS_WITHIN {
            if !stores.needs_rebuild(rules) {
                return true;
            }
            stores.rebuild_once(rules);
        }
        false
    }

    /// Raises the epoch, with the less favorable word, and takes the steps of every rebuild.
    fn rebuild_once(&mut self, rules: LedgerRules) {
        if self.raise(Word::Smallest, rules).is_some() {
            while !self.rebuilds.is_empty() {
                self.proceed(self.rebuilds.len() - 1);
            }
        }
    }
}
