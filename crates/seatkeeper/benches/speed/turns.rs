//! The order in which two sides take turns in a round.

/// Turns of a side in a round. Short turns spread the noise of the machine over both sides.
pub(crate) const TURNS: u32 = 4;

/// Returns the number of the side of each turn: 0, 1, 1, 0, 0, 1, 1, 0, or the opposite. A machine that becomes slower or
/// faster counts for both sides alike.
pub(crate) fn sides(turns: u32, backwards: bool) -> impl Iterator<Item = usize> {
    (0..2 * turns).map(move |turn| usize::from((turn % 4 == 1 || turn % 4 == 2) != backwards))
}
