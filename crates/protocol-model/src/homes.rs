//! Models the assignment of a subscriber's home among three regions: which region may admit. `docs/regions.md` has the
//! rules.
//!
//! Region 0 is the anchor by its own settings. A request may arrive in any region at any time. Messages between regions
//! are lost, late or repeated, so a partition is a message that is not delivered. A region crashes at any point and
//! forgets all that is not on disk. The settings of another region may name a wrong anchor from the beginning, or after
//! the tenant's first request in that region.

use stateright::{Model, Property};

/// The number of regions.
const REGIONS: u8 = 3;

/// A region, by its index.
type Region = u8;

/// The rules in force. A test can switch each rule off.
#[derive(Clone, Copy, Debug)]
pub struct HomeRules {
    /// An assignment is a compare-and-swap. Otherwise the last write wins.
    pub compare_and_swap: bool,
    /// An assignment is on disk before the answer. Otherwise a crash may forget the assignment.
    pub disk_before_answer: bool,
    /// A region admits only if its own ledger says home. Otherwise a region that knows no home admits at once.
    pub ledger_says_home: bool,
    /// A region that is not the anchor by its own settings assigns no home.
    pub anchor_alone_assigns: bool,
    /// A region refuses another anchor than the anchor on record.
    pub anchor_is_fixed: bool,
}

impl HomeRules {
    /// Every rule.
    pub const ALL: Self = Self {
        compare_and_swap: true,
        disk_before_answer: true,
        ledger_says_home: true,
        anchor_alone_assigns: true,
        anchor_is_fixed: true,
    };
}

/// The extent of a walk: one subscriber, three regions.
#[derive(Clone, Copy, Debug)]
pub struct Homes {
    /// The number of changes of settings.
    pub changes: u8,
    /// The rules in force.
    pub rules: HomeRules,
}

/// A region: the ledger, the settings and the requests under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The subscriber's home in the ledger.
    home: Option<Region>,
    /// The tenant's anchor in the ledger.
    recorded_anchor: Option<Region>,
    /// The tenant's anchor in the settings.
    named_anchor: Region,
    /// A home that is not yet on disk.
    unwritten: Option<Region>,
    /// The regions whose assignment has read that there is no home, and has not written yet.
    reading: u8,
}

/// The three regions, and the messages that were ever sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regions {
    regions: [State; REGIONS as usize],
    /// By region: the regions with a question sent to the region.
    asks: [u8; REGIONS as usize],
    /// By region: the homes in answers sent to the region.
    answers: [u8; REGIONS as usize],
    /// The regions that have admitted.
    admitted: u8,
    changes_left: u8,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeStep {
    /// A request of the subscriber arrives in a region, from a client or from another region.
    Request(Region),
    /// A question arrives.
    HearAsk {
        /// The region that is asked.
        at: Region,
        /// The region that asks.
        from: Region,
    },
    /// An assignment that found no home writes one, and answers.
    Assign {
        /// The region that is asked.
        at: Region,
        /// The region that asks.
        from: Region,
    },
    /// An answer arrives, and goes on record.
    HearAnswer {
        /// The region that asked.
        at: Region,
        /// The home.
        home: Region,
    },
    /// A late write reaches the disk.
    Flush(Region),
    /// A region crashes and starts again.
    Crash(Region),
    /// The settings of a region name another anchor.
    Rename {
        /// The region.
        at: Region,
        /// The anchor.
        anchor: Region,
    },
}

/// At most one region ever admits.
pub const ONE_HOME: &str = "at most one region admits";
/// The anchor becomes the home.
pub const ANCHOR_ADMITS: &str = "the anchor can be a home";
/// Another region becomes the home.
pub const OTHER_ADMITS: &str = "another region can be a home";

impl Model for Homes {
    type State = Regions;
    type Action = HomeStep;

    fn init_states(&self) -> Vec<Regions> {
        let mut states = Vec::new();
        // No region but region 0 names itself.
        for named in [[0, 0, 0], [0, 2, 0], [0, 0, 1], [0, 2, 1]] {
            let regions = named.map(|named_anchor| State {
                home: None,
                recorded_anchor: None,
                named_anchor,
                unwritten: None,
                reading: 0,
            });
            let none = [0; REGIONS as usize];
            states.push(Regions {
                regions,
                asks: none,
                answers: none,
                admitted: 0,
                changes_left: self.changes,
            });
        }
        states
    }

    fn actions(&self, _: &Regions, steps: &mut Vec<HomeStep>) {
        for at in 0..REGIONS {
            steps.extend([HomeStep::Request(at), HomeStep::Flush(at), HomeStep::Crash(at)]);
            for other in 0..REGIONS {
                steps.extend([
                    HomeStep::HearAsk { at, from: other },
                    HomeStep::Assign { at, from: other },
                    HomeStep::HearAnswer { at, home: other },
                    HomeStep::Rename { at, anchor: other },
                ]);
            }
        }
    }

    fn next_state(&self, regions: &Regions, step: HomeStep) -> Option<Regions> {
        let mut next = *regions;
        match step {
            HomeStep::Request(at) => next.request(at, self.rules)?,
            HomeStep::HearAsk { at, from } => next.hear_ask(at, from, self.rules)?,
            HomeStep::Assign { at, from } => next.assign(at, from, self.rules)?,
            HomeStep::HearAnswer { at, home } => next.hear_answer(at, home)?,
            HomeStep::Flush(at) => next.regions[usize::from(at)].flush()?,
            HomeStep::Crash(at) => {
                let region = &mut next.regions[usize::from(at)];
                (region.unwritten, region.reading) = (None, 0);
            }
            HomeStep::Rename { at, anchor } => next.rename(at, anchor)?,
        }
        (next != *regions).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_HOME, |_, regions: &Regions| regions.admitted.count_ones() <= 1),
            Property::sometimes(ANCHOR_ADMITS, |_, regions: &Regions| regions.admitted == only(0)),
            Property::sometimes(OTHER_ADMITS, |_, regions: &Regions| regions.admitted == only(2)),
        ]
    }
}

impl State {
    /// Returns the tenant's anchor, and puts the anchor of the first use on record. `None`: the anchor is refused.
    fn anchor(&mut self, rules: HomeRules) -> Option<Region> {
        let recorded = *self.recorded_anchor.get_or_insert(self.named_anchor);
        (recorded == self.named_anchor || !rules.anchor_is_fixed).then_some(self.named_anchor)
    }

    /// Returns the home known to the running region.
    fn known(&self) -> Option<Region> {
        self.unwritten.or(self.home)
    }

    fn flush(&mut self) -> Option<()> {
        self.home = Some(self.unwritten.take()?);
        Some(())
    }
}

impl Regions {
    fn request(&mut self, at: Region, rules: HomeRules) -> Option<()> {
        let region = &mut self.regions[usize::from(at)];
        let anchor = region.anchor(rules)?;
        match region.known() {
            Some(home) if home == at => self.admitted |= only(at),
            // Forwarded: the same as a request in the other region.
            Some(_) => return None,
            None => {
                self.asks[usize::from(anchor)] |= only(at);
                if !rules.ledger_says_home {
                    self.admitted |= only(at);
                }
            }
        }
        Some(())
    }

    fn hear_ask(&mut self, at: Region, from: Region, rules: HomeRules) -> Option<()> {
        if self.asks[usize::from(at)] & only(from) == 0 {
            return None;
        }
        let region = &mut self.regions[usize::from(at)];
        let anchor = region.anchor(rules)?;
        if rules.anchor_alone_assigns && anchor != at {
            return None;
        }
        match region.known() {
            Some(home) => self.answers[usize::from(from)] |= only(home),
            None => region.reading |= only(from),
        }
        Some(())
    }

    fn assign(&mut self, at: Region, from: Region, rules: HomeRules) -> Option<()> {
        let region = &mut self.regions[usize::from(at)];
        if region.reading & only(from) == 0 {
            return None;
        }
        region.reading &= !only(from);
        let home = if rules.compare_and_swap { region.known().unwrap_or(from) } else { from };
        if rules.disk_before_answer {
            region.home = Some(home);
        } else {
            region.unwritten = Some(home);
        }
        self.answers[usize::from(from)] |= only(home);
        Some(())
    }

    fn hear_answer(&mut self, at: Region, home: Region) -> Option<()> {
        if self.answers[usize::from(at)] & only(home) == 0 {
            return None;
        }
        self.regions[usize::from(at)].home.get_or_insert(home);
        Some(())
    }

    fn rename(&mut self, at: Region, anchor: Region) -> Option<()> {
        let region = &mut self.regions[usize::from(at)];
        region.recorded_anchor?;
        region.named_anchor = anchor;
        self.changes_left = self.changes_left.checked_sub(1)?;
        Some(())
    }
}

fn only(region: Region) -> u8 {
    1 << region
}
