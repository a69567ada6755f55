//! Models the moves of a subscriber's home among three regions: which region may admit. `docs/regions.md` has the rules.
//!
//! A region keeps the home, its version and its state on disk, and the open pool in memory. Messages between regions are
//! lost, late or repeated, so a partition is a message that is not delivered. A region crashes between any two steps and
//! forgets all that is not on disk.
//!
//! A liar has the key of every region and a server of its own: the liar tells of moves and hands over homes, none of them
//! true. The liar answers no question for another region, because a question goes to the region's own URL.

use stateright::{Model, Property};

/// The number of regions.
const REGIONS: u8 = 3;

/// A region, by its index. Region 0 is the anchor, and [`LIAR`] the liar.
type Region = u8;

const ANCHOR: Region = 0;
const LIAR: Region = REGIONS;

/// The rules in force. A test can switch each rule off.
#[derive(Clone, Copy, Debug)]
pub struct MoveRules {
    /// A region takes over a home, or learns of a home, only by a greater version than its own. Otherwise a repeated
    /// message counts again.
    pub version_check: bool,
    /// The pool is closed before the home is handed over.
    pub close_before_handover: bool,
    /// A closed pool stays in memory for longer than any request. Otherwise a request that read the old home before the
    /// move opens the pool after the move.
    pub closed_pool_stays: bool,
    /// A region opens the pool only if its own ledger says home. Otherwise a cached home opens the pool.
    pub ledger_opens: bool,
    /// The start of a move is on disk before the home is handed over. Otherwise a crash forgets the move.
    pub move_on_disk: bool,
    /// The anchor learns of a move from the region on the anchor's record alone. Otherwise the anchor believes every teller.
    pub home_confirms: bool,
    /// A target takes over a home only from the region that the anchor has on record.
    pub anchor_is_asked: bool,
    /// A target asks the region that hands over for its own record. Otherwise a key is enough to hand over the region's homes.
    pub source_is_asked: bool,
}

impl MoveRules {
    /// Every rule.
    pub const ALL: Self = Self {
        version_check: true,
        close_before_handover: true,
        closed_pool_stays: true,
        ledger_opens: true,
        move_on_disk: true,
        home_confirms: true,
        anchor_is_asked: true,
        source_is_asked: true,
    };
}

/// The extent of a walk: one subscriber, three regions.
#[derive(Clone, Copy, Debug)]
pub struct HomeMoves {
    /// The number of moves, at most 4.
    pub moves: u8,
    /// The rules in force.
    pub rules: MoveRules,
}

/// The state of a home in a region that knows the home.
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

/// A region: the home on disk, and the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    home: Home,
    /// The home before a move that is not yet on disk.
    on_disk: Option<Home>,
    /// The pool is open for claims.
    is_open: bool,
    /// The pool is closed for a move, and admits nobody.
    is_closed: bool,
    /// A request has read that the home is here, and has not opened the pool yet.
    opens: bool,
    /// A node has cached that the home is here.
    is_cached: bool,
    /// A handover under way that the questions of this target have confirmed: the region that hands over, and the version.
    checked: Option<(Region, u8)>,
}

/// The three regions, and the messages that were ever sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MovingRegions {
    regions: [State; REGIONS as usize],
    /// Handovers and answers about moves, by the regions themselves: a bit for each version and target.
    handovers: u32,
    /// By region: the homes that the region has told to others, a bit for each version and home.
    told: [u32; REGIONS as usize],
    /// Versions for which the target has confirmed the takeover.
    taken: u8,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// A request reads the home in a region.
    Read(Region),
    /// A request opens the pool.
    Open(Region),
    /// A move begins.
    Begin {
        /// The home.
        at: Region,
        /// The target.
        to: Region,
    },
    /// The pool is closed for a move.
    Close(Region),
    /// The home is handed over to its target, and the target's question about the move is answered.
    HandOver(Region),
    /// A handover reaches its target, and the target checks the handover.
    Check {
        /// The target.
        at: Region,
        /// The region that hands over, or whose key the liar has used.
        from: Region,
        /// The version of the home in the target.
        version: u8,
    },
    /// The target takes a checked home over.
    Arrive(Region),
    /// The answer of the target arrives, and the move ends.
    End(Region),
    /// A region tells others its own record of the home.
    Tell(Region),
    /// A region hears of a home, from the liar or from another region.
    Hear {
        /// The region.
        at: Region,
        /// The home.
        home: Region,
        /// The version of the home.
        version: u8,
    },
    /// A closed pool is forgotten.
    Forget(Region),
    /// A region crashes and starts again.
    Crash(Region),
}

/// At most one region may admit.
pub const ONE_ADMITS: &str = "at most one region may admit";
/// A home comes to a region.
pub const ARRIVES: &str = "a home can arrive in region 2";
/// A home comes back.
pub const RETURNS: &str = "a home can come back";

impl Model for HomeMoves {
    type State = MovingRegions;
    type Action = MoveStep;

    fn init_states(&self) -> Vec<MovingRegions> {
        // The home is region 1. The anchor knows the home, and region 2 has never seen the subscriber.
        let regions = [1, 1, 0].map(|version| State {
            home: Home { region: 1, version, standing: Standing::Here },
            on_disk: None,
            is_open: false,
            is_closed: false,
            opens: false,
            is_cached: false,
            checked: None,
        });
        vec![MovingRegions { regions, handovers: 0, told: [0; REGIONS as usize], taken: 0 }]
    }

    fn actions(&self, _: &MovingRegions, steps: &mut Vec<MoveStep>) {
        for at in 0..REGIONS {
            steps.extend([
                MoveStep::Read(at),
                MoveStep::Open(at),
                MoveStep::Close(at),
                MoveStep::HandOver(at),
                MoveStep::Arrive(at),
                MoveStep::End(at),
                MoveStep::Tell(at),
                MoveStep::Forget(at),
                MoveStep::Crash(at),
            ]);
            steps.extend((0..REGIONS).map(|to| MoveStep::Begin { at, to }));
            for version in 1..=self.moves + 1 {
                steps.extend((0..=LIAR).map(|from| MoveStep::Check { at, from, version }));
                steps.extend((0..=LIAR).map(|home| MoveStep::Hear { at, home, version }));
            }
        }
    }

    fn next_state(&self, regions: &MovingRegions, step: MoveStep) -> Option<MovingRegions> {
        let mut next = *regions;
        match step {
            MoveStep::Read(at) => next.read(at, self.rules)?,
            MoveStep::Open(at) => next.open(at)?,
            MoveStep::Begin { at, to } => next.begin(at, to, self)?,
            MoveStep::Close(at) => next.close(at, self.rules)?,
            MoveStep::HandOver(at) => next.hand_over(at, self.rules)?,
            MoveStep::Check { at, from, version } => next.check(at, (from, version), self.rules)?,
            MoveStep::Arrive(at) => next.arrive(at, self.rules)?,
            MoveStep::End(at) => next.end(at)?,
            MoveStep::Tell(at) => next.tell(at)?,
            MoveStep::Hear { at, home, version } => next.hear(at, home, version, self.rules)?,
            MoveStep::Forget(at) => {
                let region = next.region(at);
                // Longer than any request.
                (!region.opens).then_some(())?;
                region.is_closed = false;
            }
            MoveStep::Crash(at) => {
                let region = next.region(at);
                let home = region.on_disk.take().unwrap_or(region.home);
                *region = State {
                    home,
                    is_open: false,
                    is_closed: false,
                    opens: false,
                    is_cached: false,
                    checked: None,
                    ..*region
                };
            }
        }
        (next != *regions).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_ADMITS, |_, regions: &MovingRegions| {
                (0..REGIONS).filter(|at| regions.may_admit(*at)).count() <= 1
            }),
            Property::sometimes(ARRIVES, |_, regions: &MovingRegions| regions.regions[2].is_open),
            Property::sometimes(RETURNS, |_, regions: &MovingRegions| {
                regions.regions[1].is_open && regions.regions[1].home.version > 1
            }),
        ]
    }
}

impl State {
    fn is_home(&self, at: Region) -> bool {
        self.home.version > 0 && self.home.region == at && self.home.standing == Standing::Here
    }
}

impl MovingRegions {
    fn region(&mut self, at: Region) -> &mut State {
        &mut self.regions[usize::from(at)]
    }

    fn may_admit(&self, at: Region) -> bool {
        let region = &self.regions[usize::from(at)];
        region.is_open || region.is_home(at)
    }

    fn read(&mut self, at: Region, rules: MoveRules) -> Option<()> {
        let region = self.region(at);
        let is_home = region.is_home(at);
        region.is_cached |= is_home;
        (is_home || (!rules.ledger_opens && region.is_cached)).then_some(())?;
        region.opens = true;
        Some(())
    }

    fn open(&mut self, at: Region) -> Option<()> {
        let region = self.region(at);
        region.opens.then_some(())?;
        region.opens = false;
        // An open pool stays open, and a closed pool stays closed.
        region.is_open |= !region.is_closed;
        Some(())
    }

    fn begin(&mut self, at: Region, to: Region, model: &HomeMoves) -> Option<()> {
        let region = self.region(at);
        (region.is_home(at) && at != to && region.home.version <= model.moves).then_some(())?;
        if !model.rules.move_on_disk {
            region.on_disk = Some(region.home);
        }
        region.home = Home { region: to, version: region.home.version + 1, standing: Standing::Moving };
        Some(())
    }

    fn close(&mut self, at: Region, rules: MoveRules) -> Option<()> {
        let region = self.region(at);
        (region.home.standing == Standing::Moving).then_some(())?;
        region.is_open = false;
        region.is_closed = rules.closed_pool_stays;
        Some(())
    }

    fn hand_over(&mut self, at: Region, rules: MoveRules) -> Option<()> {
        let region = self.region(at);
        (region.home.standing == Standing::Moving).then_some(())?;
        // A pool is closed by a step of the registry, also after a crash.
        let is_closed = !region.is_open && (region.is_closed || !rules.closed_pool_stays);
        (is_closed || !rules.close_before_handover).then_some(())?;
        let home = region.home;
        self.handovers |= bit(home.version, home.region);
        Some(())
    }

    fn check(&mut self, at: Region, (from, version): (Region, u8), rules: MoveRules) -> Option<()> {
        (from != at).then_some(())?;
        // The liar needs no record, and sends handovers in the name of every region.
        let is_confirmed = from == LIAR || !rules.source_is_asked || self.handovers & bit(version, at) != 0;
        let is_at_anchor = from == ANCHOR || !rules.anchor_is_asked || {
            let anchor = self.regions[usize::from(ANCHOR)].home;
            anchor.standing != Standing::Moving && anchor.region == from
        };
        (is_confirmed && is_at_anchor).then_some(())?;
        self.region(at).checked = Some((from, version));
        Some(())
    }

    fn arrive(&mut self, at: Region, rules: MoveRules) -> Option<()> {
        let region = self.region(at);
        let (_, version) = region.checked.take()?;
        let known = region.home.version;
        if known < version || !rules.version_check {
            // A pool that is open, or closed for an earlier move, refuses the home for now.
            let is_busy = region.is_open || region.is_closed || region.home.standing == Standing::Moving;
            (!is_busy).then_some(())?;
            region.home = Home { region: at, version, standing: Standing::Here };
        }
        self.taken |= 1 << version;
        Some(())
    }

    fn end(&mut self, at: Region) -> Option<()> {
        let taken = self.taken;
        let region = self.region(at);
        let home = region.home;
        (home.standing == Standing::Moving && taken & 1 << home.version != 0).then_some(())?;
        region.home.standing = Standing::Moved;
        region.on_disk = None;
        Some(())
    }

    fn tell(&mut self, at: Region) -> Option<()> {
        let home = self.regions[usize::from(at)].home;
        (home.version > 0).then_some(())?;
        // A home on its way out of a region is still in the region.
        self.told[usize::from(at)] |= match home.standing {
            Standing::Moving => bit(home.version - 1, at),
            Standing::Here | Standing::Moved => bit(home.version, home.region),
        };
        Some(())
    }

    fn hear(&mut self, at: Region, home: Region, version: u8, rules: MoveRules) -> Option<()> {
        let known = self.regions[usize::from(at)].home;
        let is_told_by = |teller: Region| {
            self.told.get(usize::from(teller)).is_none_or(|told| told & bit(version, home) != 0)
        };
        // A region asks the home on record, and every region but the anchor asks the anchor.
        let is_confirmed =
            (known.version > 0 && is_told_by(known.region)) || (at != ANCHOR && is_told_by(ANCHOR));
        (is_confirmed || (at == ANCHOR && !rules.home_confirms)).then_some(())?;
        let region = self.region(at);
        let is_newer = known.version < version || !rules.version_check;
        // Another region's word makes no region the home, except for the first assignment by the anchor, and takes no home
        // from a region.
        let is_allowed = (home != at || version == 1) && !region.is_home(at);
        (is_newer && is_allowed && known.standing != Standing::Moving).then_some(())?;
        region.home = Home { region: home, version, standing: Standing::Here };
        Some(())
    }
}

fn bit(version: u8, region: Region) -> u32 {
    1 << (version * (REGIONS + 1) + region)
}
