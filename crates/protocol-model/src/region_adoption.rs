//! Models the adoption of a lost region: a region is lost for good, and another region takes over its pools by a backup of its
//! ledger. `docs/regions.md` has the rules.
//!
//! Region 1 has the home of one subscriber, or assigns the home to itself later, and is lost. Region 2 is the successor, and
//! region 0 a third region. Homes move between region 1 and region 0 before and during the adoption. Messages are lost or
//! late. The backup is of any earlier time, and may lack the first home.

use stateright::{Model, Property};

/// A region, by its index.
type Region = u8;

const THIRD: Region = 0;
const LOST: Region = 1;
const SUCCESSOR: Region = 2;

/// The rules in force. A test can switch each rule off.
#[derive(Clone, Copy, Debug)]
pub struct AdoptionRules {
    /// The adoption begins after the region is lost, and not while a link to the region is down.
    pub lost_is_dead: bool,
    /// A region with the adoption on record takes over no home from the lost region.
    pub refuses_lost: bool,
    /// The successor learns the homes of the third region before the successor takes over a home.
    pub gathers_homes: bool,
    /// The third region has the adoption on record before its homes are learned.
    pub tells_first: bool,
    /// An adopted home admits nobody until a TTL has passed since the loss.
    pub silence: bool,
    /// A home that was on its way to the lost region, and comes to the successor, is silent as well.
    pub arrivals_are_silent: bool,
    /// The successor, as the anchor, assigns no home until a TTL has passed since the loss.
    pub assigns_silently: bool,
    /// The answer of a target ends a move to this target alone. Otherwise a late answer of the lost region ends a move that
    /// goes to the successor by now.
    pub answers_name_target: bool,
}

impl AdoptionRules {
    /// Every rule.
    pub const ALL: Self = Self {
        lost_is_dead: true,
        refuses_lost: true,
        gathers_homes: true,
        tells_first: true,
        silence: true,
        arrivals_are_silent: true,
        assigns_silently: true,
        answers_name_target: true,
    };
}

/// The extent of a walk.
#[derive(Clone, Copy, Debug)]
pub struct RegionAdoption {
    /// The number of moves before the adoption, at most 4.
    pub moves: u8,
    /// The rules in force.
    pub rules: AdoptionRules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Here,
    Moving,
    Moved,
}

/// A home on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Home {
    region: Region,
    /// 0: the region knows no home.
    version: u8,
    standing: Standing,
}

/// The progress of the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    None,
    Begun,
    Gathered,
    Done,
}

/// The three regions, and the messages between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdoptingRegions {
    homes: [Home; 3],
    /// Homes handed over: a bit for each version and target.
    handovers: u32,
    /// Homes taken over: a bit for each version and target.
    taken: u32,
    /// The home in the backup of the lost region's ledger.
    backup: Option<Home>,
    is_lost: bool,
    /// Sessions that the lost region admitted may live.
    lost_sessions_live: bool,
    phase: Phase,
    /// The third region has the adoption on record.
    third_knows: bool,
    /// The successor's home admits nobody yet.
    is_silent: bool,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdoptionStep {
    /// The ledger of the region that will be lost is backed up.
    BackUp,
    /// A move begins at a region, towards the other region of the two.
    Begin(Region),
    /// A home on its way is handed over to its target.
    HandOver(Region),
    /// A handover arrives.
    Arrive {
        /// The target.
        at: Region,
        /// The version of the home in the target.
        version: u8,
    },
    /// The answer of the target arrives, and the move ends.
    End(Region),
    /// The region is lost for good.
    Lose,
    /// The TTL of every session of the lost region is over.
    Expire,
    /// The region that will be lost, as the anchor, assigns the first home to itself.
    Play,
    /// The successor has the adoption on record.
    BeginAdoption,
    /// The third region has the adoption on record.
    TellThird,
    /// The successor learns the homes that the third region knows.
    Gather,
    /// The successor takes over the home by the backup.
    Adopt,
    /// The successor, as the anchor, assigns a first home.
    Assign,
    /// The silence is over.
    EndSilence,
}

/// At most one region has sessions or admits.
pub const ONE_HOLDS: &str = "at most one region has sessions or admits";
/// A home that has moved from the third region to the successor is there.
pub const HOME_IS_THERE: &str = "a home that has moved to the successor is there";
/// The successor admits.
pub const SUCCESSOR_ADMITS: &str = "the successor can admit";
/// A home moved after the backup stays in the region of the move.
pub const MOVED_STAYS: &str = "a home that moved after the backup can stay";

impl Model for RegionAdoption {
    type State = AdoptingRegions;
    type Action = AdoptionStep;

    fn init_states(&self) -> Vec<AdoptingRegions> {
        let known = Home { region: LOST, version: 1, standing: Standing::Here };
        let none = Home { version: 0, ..known };
        let started = |homes| AdoptingRegions {
            homes,
            handovers: 0,
            taken: 0,
            backup: None,
            is_lost: false,
            lost_sessions_live: false,
            phase: Phase::None,
            third_knows: false,
            is_silent: false,
        };
        vec![started([known, known, none]), started([none, none, none])]
    }

    fn actions(&self, _: &AdoptingRegions, steps: &mut Vec<AdoptionStep>) {
        steps.extend([
            AdoptionStep::BackUp,
            AdoptionStep::Lose,
            AdoptionStep::Expire,
            AdoptionStep::Play,
            AdoptionStep::BeginAdoption,
            AdoptionStep::TellThird,
            AdoptionStep::Gather,
            AdoptionStep::Adopt,
            AdoptionStep::Assign,
            AdoptionStep::EndSilence,
        ]);
        for at in [THIRD, LOST] {
            steps.extend([AdoptionStep::Begin(at), AdoptionStep::HandOver(at), AdoptionStep::End(at)]);
        }
        for version in 1..=self.moves + 2 {
            steps.extend([THIRD, LOST, SUCCESSOR].map(|at| AdoptionStep::Arrive { at, version }));
        }
    }

    fn next_state(&self, regions: &AdoptingRegions, step: AdoptionStep) -> Option<AdoptingRegions> {
        let mut next = *regions;
        let rules = self.rules;
        match step {
            AdoptionStep::BackUp => next.back_up()?,
            AdoptionStep::Begin(at) => next.begin(at, self.moves)?,
            AdoptionStep::HandOver(at) => next.hand_over(at)?,
            AdoptionStep::Arrive { at, version } => next.arrive(at, version, rules)?,
            AdoptionStep::End(at) => next.end(at, rules)?,
            AdoptionStep::Lose => next.lose()?,
            AdoptionStep::Expire => {
                next.is_lost.then_some(())?;
                next.lost_sessions_live = false;
            }
            AdoptionStep::Play => {
                (!next.is_lost && next.home(LOST).version == 0).then_some(())?;
                next.home(LOST).version = 1;
            }
            AdoptionStep::BeginAdoption => next.begin_adoption(rules)?,
            AdoptionStep::TellThird => next.tell_third()?,
            AdoptionStep::Gather => next.gather(rules)?,
            AdoptionStep::Adopt => next.adopt(rules)?,
            AdoptionStep::Assign => {
                (next.phase == Phase::Done && next.home(SUCCESSOR).version == 0).then_some(())?;
                *next.home(SUCCESSOR) = Home { region: SUCCESSOR, version: 1, standing: Standing::Here };
                next.is_silent = rules.assigns_silently && next.lost_sessions_live;
            }
            AdoptionStep::EndSilence => {
                (!next.lost_sessions_live && next.is_lost).then_some(())?;
                next.is_silent = false;
            }
        }
        (next != *regions).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_HOLDS, |_, regions: &AdoptingRegions| regions.holders() <= 1),
            Property::always(HOME_IS_THERE, |_, regions: &AdoptingRegions| regions.has_moved_home()),
            Property::sometimes(SUCCESSOR_ADMITS, |_, regions: &AdoptingRegions| {
                regions.is_home(SUCCESSOR) && !regions.is_silent
            }),
            Property::sometimes(MOVED_STAYS, |_, regions: &AdoptingRegions| {
                regions.phase == Phase::Done && regions.is_home(THIRD)
            }),
        ]
    }
}

impl AdoptingRegions {
    fn home(&mut self, at: Region) -> &mut Home {
        &mut self.homes[usize::from(at)]
    }

    fn is_home(&self, at: Region) -> bool {
        let home = self.homes[usize::from(at)];
        home.version > 0 && home.region == at && home.standing == Standing::Here
    }

    /// Returns the number of regions that may admit, or have sessions that a further admission exceeds.
    fn holders(&self) -> usize {
        let lost = if self.is_lost { self.lost_sessions_live } else { self.is_home(LOST) };
        let successor = self.is_home(SUCCESSOR) && !self.is_silent;
        [lost, successor, self.is_home(THIRD)].into_iter().filter(|holds| *holds).count()
    }

    /// Returns `false` if the home has moved from the third region to the successor, and the successor does not have the home.
    fn has_moved_home(&self) -> bool {
        let left = self.homes[usize::from(THIRD)];
        let has_moved = left.standing == Standing::Moved && left.region == SUCCESSOR;
        !has_moved || self.homes[usize::from(SUCCESSOR)].version >= left.version
    }

    fn is_dead(&self, at: Region) -> bool {
        at == LOST && self.is_lost
    }

    /// Returns whether a region has the adoption on record.
    fn knows(&self, at: Region) -> bool {
        match at {
            THIRD => self.third_knows,
            SUCCESSOR => self.phase > Phase::None,
            _ => false,
        }
    }

    fn back_up(&mut self) -> Option<()> {
        (!self.is_lost).then_some(())?;
        self.backup = Some(self.homes[usize::from(LOST)]);
        Some(())
    }

    fn begin(&mut self, at: Region, moves: u8) -> Option<()> {
        let to = if at == LOST { THIRD } else { LOST };
        (!self.is_dead(at) && !self.knows(at) && self.is_home(at)).then_some(())?;
        let home = self.home(at);
        (home.version <= moves).then_some(())?;
        *home = Home { region: to, version: home.version + 1, standing: Standing::Moving };
        Some(())
    }

    fn hand_over(&mut self, at: Region) -> Option<()> {
        let home = *self.home(at);
        (!self.is_dead(at) && home.standing == Standing::Moving).then_some(())?;
        self.handovers |= bit(home.version, home.region);
        Some(())
    }

    fn arrive(&mut self, at: Region, version: u8, rules: AdoptionRules) -> Option<()> {
        (self.handovers & bit(version, at) != 0 && !self.is_dead(at)).then_some(())?;
        // Homes come to the third region from the lost region alone, and to the successor from the third region.
        (at != THIRD || !rules.refuses_lost || !self.third_knows).then_some(())?;
        (at != SUCCESSOR || self.phase == Phase::Done).then_some(())?;
        let home = self.home(at);
        if home.version < version && home.standing != Standing::Moving {
            *home = Home { region: at, version, standing: Standing::Here };
            if at == SUCCESSOR {
                self.is_silent = rules.arrivals_are_silent && self.lost_sessions_live;
            }
        }
        self.taken |= bit(version, at);
        Some(())
    }

    fn end(&mut self, at: Region, rules: AdoptionRules) -> Option<()> {
        let home = *self.home(at);
        let is_from = |target: &Region| *target == home.region || !rules.answers_name_target;
        let mut targets = [THIRD, LOST, SUCCESSOR].into_iter().filter(is_from);
        let is_taken = targets.any(|target| self.taken & bit(home.version, target) != 0);
        (!self.is_dead(at) && home.standing == Standing::Moving && is_taken).then_some(())?;
        self.home(at).standing = Standing::Moved;
        Some(())
    }

    fn lose(&mut self) -> Option<()> {
        (!self.is_lost && self.backup.is_some()).then_some(())?;
        let home = *self.home(LOST);
        let is_handed_over =
            home.standing == Standing::Moving && self.handovers & bit(home.version, home.region) != 0;
        self.is_lost = true;
        self.lost_sessions_live =
            self.is_home(LOST) || (home.standing == Standing::Moving && !is_handed_over);
        Some(())
    }

    fn begin_adoption(&mut self, rules: AdoptionRules) -> Option<()> {
        (self.phase == Phase::None && self.backup.is_some()).then_some(())?;
        (self.is_lost || !rules.lost_is_dead).then_some(())?;
        self.phase = Phase::Begun;
        Some(())
    }

    fn tell_third(&mut self) -> Option<()> {
        (self.phase > Phase::None && !self.third_knows).then_some(())?;
        self.third_knows = true;
        // A home on its way to the lost region goes to the successor.
        let home = self.home(THIRD);
        if home.standing == Standing::Moving {
            home.region = SUCCESSOR;
        }
        Some(())
    }

    fn gather(&mut self, rules: AdoptionRules) -> Option<()> {
        (self.phase == Phase::Begun && (self.third_knows || !rules.tells_first)).then_some(())?;
        let told = *self.home(THIRD);
        let version = told.version - u8::from(told.standing == Standing::Moving);
        let region = if told.standing == Standing::Moving { THIRD } else { told.region };
        let known = self.home(SUCCESSOR);
        if region != SUCCESSOR && known.version < version {
            *known = Home { region, version, standing: Standing::Here };
        }
        self.phase = Phase::Gathered;
        Some(())
    }

    fn adopt(&mut self, rules: AdoptionRules) -> Option<()> {
        let is_due = self.phase == Phase::Gathered || (!rules.gathers_homes && self.phase == Phase::Begun);
        is_due.then_some(())?;
        let backup = self.backup?;
        self.phase = Phase::Done;
        let known = *self.home(SUCCESSOR);
        let version = match backup.standing {
            Standing::Here if backup.version == 0 => 0,
            Standing::Here => backup.version + 1,
            Standing::Moving => backup.version,
            // The backup says that the home is elsewhere, so the home is adopted only if the third region says otherwise.
            Standing::Moved => 0,
        };
        let is_in_lost = known.version > 0 && known.region == LOST;
        let is_in_third = known.version > 0 && known.region == THIRD;
        let backup_counts = backup.region != THIRD || backup.standing == Standing::Moving;
        if is_in_lost || (backup_counts && version > 0 && !(is_in_third && known.version >= version)) {
            let version = version.max(known.version + 1);
            *self.home(SUCCESSOR) = Home { region: SUCCESSOR, version, standing: Standing::Here };
            self.is_silent = rules.silence;
        }
        Some(())
    }
}

fn bit(version: u8, region: Region) -> u32 {
    1 << (version * 3 + region)
}
