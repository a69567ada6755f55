//! Forwarding among regions: `layer` is in front of the APIs, and sends a request of a pool at home elsewhere to the
//! pool's home. `locator` reads from a request what names its home. `assignments` is the API of an anchor for the other
//! regions, `arrivals` the API of moves, and `adoptions` the API by which a lost region is taken over. `newer` reads the
//! newer home in the refusal of a region that a home has left, and `heartbeats` sends plain heartbeats in batches.

mod adoptions;
mod arrivals;
mod assignments;
mod heartbeats;
mod layer;
mod locator;
mod newer;

pub(crate) use assignments::routes;
pub(crate) use layer::Layer;
