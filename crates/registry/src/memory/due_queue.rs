//! The due-index of a bucket: the pool whose sweep is due first.
//!
//! A binary heap of pools' slots. The index of places makes a changed time as cheap as a new entry, and no outdated
//! entry remains. Eight bytes a pool, where an ordered set takes some 35.

use seatkeeper_core::RegistryTime;

/// The place of a slot outside the heap.
const NOWHERE: u32 = u32::MAX;

/// Pools' slots, of which the first is due first. The caller keeps the due times, and tells each change.
#[derive(Default)]
pub(super) struct DueQueue {
    heap: Vec<u32>,
    /// The place in the heap of each slot.
    places: Vec<u32>,
}

impl DueQueue {
    /// Returns the slot that is due first.
    pub(super) fn first(&self) -> Option<u32> {
        self.heap.first().copied()
    }

    /// Adds a slot, or moves the slot after a change of its due time. `due` returns the due time of a slot.
    pub(super) fn update(&mut self, slot: u32, due: impl Fn(u32) -> RegistryTime) {
        let mut place = self.place_of(slot).unwrap_or_else(|| {
            self.places.resize(self.places.len().max(slot as usize + 1), NOWHERE);
            self.heap.push(slot);
            self.heap.len() - 1
        });
        while place > 0 && (due(slot), slot) < (due(self.heap[parent(place)]), self.heap[parent(place)]) {
            self.put(place, self.heap[parent(place)]);
            place = parent(place);
        }
        while let Some(child) = self.first_child(place, &due)
            && (due(self.heap[child]), self.heap[child]) < (due(slot), slot)
        {
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, slot);
    }

    /// Removes a slot. A slot outside the queue changes nothing.
    pub(super) fn remove(&mut self, slot: u32, due: impl Fn(u32) -> RegistryTime) {
        let Some(place) = self.place_of(slot) else { return };
        self.places[slot as usize] = NOWHERE;
        let last = self.heap.pop();
        if let Some(last) = last.filter(|&last| last != slot) {
            self.put(place, last);
            self.update(last, due);
        }
    }

    fn place_of(&self, slot: u32) -> Option<usize> {
        self.places.get(slot as usize).filter(|&&place| place != NOWHERE).map(|&place| place as usize)
    }

    fn put(&mut self, place: usize, slot: u32) {
        self.heap[place] = slot;
        self.places[slot as usize] = place as u32;
    }

    /// Returns the place of the child that is due first.
    fn first_child(&self, place: usize, due: impl Fn(u32) -> RegistryTime) -> Option<usize> {
        let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
        children.min_by_key(|&child| (due(self.heap[child]), self.heap[child]))
    }
}

fn parent(place: usize) -> usize {
    (place - 1) / 2
}

#[cfg(test)]
mod tests;
