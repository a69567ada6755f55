//! Handles as C sees them: numbers that look like pointers.
//!
//! A handle has the kind of its object, the index of a slot, and the generation of the slot. A freed handle, a handle of
//! another kind and a made-up number are refused by comparison. No handle is dereferenced, so none can crash.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::codes::{SK_MISUSE, SK_NOT_OWNER};
use crate::process;

const KIND_BITS: u32 = 4;
const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = usize::BITS - KIND_BITS - INDEX_BITS;
/// The slots of a chunk. The pointers to all chunks are static data of the library.
const CHUNK: usize = 1024;
const CHUNKS: usize = (1 << INDEX_BITS) / CHUNK;

/// The reason why a handle is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHandle {
    /// No object has this handle.
    Unknown,
    /// The object belongs to another process.
    NotOwner,
}

impl BadHandle {
    /// Returns the result in C.
    pub(crate) fn result(self) -> i32 {
        match self {
            Self::Unknown => SK_MISUSE,
            Self::NotOwner => SK_NOT_OWNER,
        }
    }
}

/// All objects of a kind. The table grows in chunks, and a freed slot is used again with its next generation.
pub(crate) struct Table<T: 'static> {
    kind: usize,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    /// The index after the last one that was taken: a hint.
    next: AtomicUsize,
}

struct Slot<T> {
    /// The process of the object; 0 if the slot is free.
    owner: AtomicU32,
    content: RwLock<Content<T>>,
}

struct Content<T> {
    generation: usize,
    object: Option<Arc<T>>,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self { owner: AtomicU32::new(0), content: RwLock::new(Content { generation: 0, object: None }) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Content<T>> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Content<T>> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a slot of another process before its lock is touched: the lock may have been held at the fork.
    fn owned_by(&self, process: u32) -> Result<&Self, BadHandle> {
        match self.owner.load(Ordering::Acquire) {
            0 => Err(BadHandle::Unknown),
            owner if owner == process => Ok(self),
            _ => Err(BadHandle::NotOwner),
        }
    }
}

impl<T> Content<T> {
    fn object(&self, generation: usize) -> Result<&Arc<T>, BadHandle> {
        let object = self.object.as_ref().filter(|_| self.generation == generation);
        object.ok_or(BadHandle::Unknown)
    }
}

impl<T> Table<T> {
    /// Creates an empty table. `kind` is different for each table, and not 0.
    pub(crate) const fn new(kind: usize) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "a kind fits its bits");
        Self { kind, chunks: [const { OnceLock::new() }; CHUNKS], next: AtomicUsize::new(0) }
    }

    /// Adds an object of this process, and returns its handle; `None` if the table is full.
    pub(crate) fn insert(&self, object: Arc<T>) -> Option<usize> {
        process::watch_forks();
        let process = process::current();
        let start = self.next.load(Ordering::Relaxed);
        let (index, slot) = (0..CHUNKS * CHUNK).find_map(|step| {
            let index = (start + step) % (CHUNKS * CHUNK);
            // Free slots of chunks that exist come before a new chunk.
            let index = if self.chunks[index / CHUNK].get().is_some() { index } else { step };
            let chunk = self.chunks[index / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::new()).collect());
            let slot = &chunk[index % CHUNK];
            let taken = slot.owner.compare_exchange(0, process, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok().then_some((index, slot))
        })?;
        self.next.store(index + 1, Ordering::Relaxed);
        let mut content = slot.write();
        content.generation = (content.generation + 1) & ((1 << GENERATION_BITS) - 1);
        content.object = Some(object);
        Some(content.generation << (INDEX_BITS + KIND_BITS) | index << KIND_BITS | self.kind)
    }

    /// Calls `look` with the object, under a lock that only [`remove`](Self::remove) contends for. Makes no system call.
    pub(crate) fn with<R>(&self, handle: usize, look: impl FnOnce(&T) -> R) -> Result<R, BadHandle> {
        let (slot, generation) = self.slot(handle)?;
        let content = slot.owned_by(process::last_known())?.read();
        content.object(generation).map(|object| look(object))
    }

    /// Returns the object, which lives on while the caller holds it.
    pub(crate) fn get(&self, handle: usize) -> Result<Arc<T>, BadHandle> {
        let (slot, generation) = self.slot(handle)?;
        let content = slot.owned_by(process::current())?.read();
        content.object(generation).cloned()
    }

    /// Removes the object. The handle is refused from now on.
    pub(crate) fn remove(&self, handle: usize) -> Result<Arc<T>, BadHandle> {
        let (slot, generation) = self.slot(handle)?;
        let mut content = slot.owned_by(process::current())?.write();
        content.object(generation)?;
        let object = content.object.take().ok_or(BadHandle::Unknown)?;
        drop(content);
        slot.owner.store(0, Ordering::Release);
        Ok(object)
    }

    fn slot(&self, handle: usize) -> Result<(&Slot<T>, usize), BadHandle> {
        let (kind, rest) = (handle & ((1 << KIND_BITS) - 1), handle >> KIND_BITS);
        let (index, generation) = (rest & ((1 << INDEX_BITS) - 1), rest >> INDEX_BITS);
        let chunk = self.chunks[index / CHUNK].get().filter(|_| kind == self.kind);
        chunk.map(|chunk| (&chunk[index % CHUNK], generation)).ok_or(BadHandle::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn a_handle_finds_its_object_until_it_is_removed() {
        let table = Table::new(1);
        let handle = table.insert(Arc::new("a")).unwrap();
        assert_eq!(table.with(handle, |object| *object), Ok("a"));
        assert_eq!(table.get(handle).as_deref(), Ok(&"a"));
        assert_eq!(table.remove(handle).as_deref(), Ok(&"a"));
        assert_eq!(table.remove(handle), Err(BadHandle::Unknown));
        assert_eq!(table.with(handle, |_| ()), Err(BadHandle::Unknown));
    }

    #[test]
    fn a_slot_used_again_refuses_its_old_handles() {
        let table = Table::new(1);
        let mut old = HashSet::new();
        for number in 0..10_000 {
            let handle = table.insert(Arc::new(number)).unwrap();
            assert!(old.insert(handle), "handle {handle:x} twice");
            table.next.store(0, Ordering::Relaxed);
            table.remove(handle).unwrap();
        }
        assert_eq!(table.chunks.iter().filter(|chunk| chunk.get().is_some()).count(), 1);
        assert!(old.iter().all(|handle| table.get(*handle) == Err(BadHandle::Unknown)));
    }

    #[test]
    fn made_up_handles_and_handles_of_another_kind_are_refused() {
        let (table, other) = (Table::new(1), Table::new(2));
        let handles: Vec<_> = (0..1_000).map(|number| table.insert(Arc::new(number)).unwrap()).collect();
        assert_eq!(handles.iter().collect::<HashSet<_>>().len(), 1_000);
        other.insert(Arc::new(0)).unwrap();
        let made_up = [0, 1, usize::MAX, handles[7] ^ 1, handles[7] ^ 1 << 40, 0xdead_beef];
        assert!(made_up.iter().all(|handle| table.get(*handle) == Err(BadHandle::Unknown)));
        assert!(handles.iter().all(|handle| other.get(*handle) == Err(BadHandle::Unknown)));
        assert!(
            handles.iter().enumerate().all(|(number, handle)| table.get(*handle).as_deref() == Ok(&number))
        );
    }

    #[test]
    fn an_object_of_another_process_is_refused_without_its_lock() {
        let table = Table::new(1);
        let handle = table.insert(Arc::new(())).unwrap();
        let (slot, _) = table.slot(handle).unwrap();
        slot.owner.store(u32::MAX, Ordering::Relaxed);
        let _held_at_the_fork = slot.write();
        assert_eq!(table.get(handle), Err(BadHandle::NotOwner));
        assert_eq!(table.with(handle, |()| ()), Err(BadHandle::NotOwner));
        assert_eq!(table.remove(handle), Err(BadHandle::NotOwner));
    }

    #[test]
    fn threads_take_and_free_slots_at_once() {
        let table = Table::new(1);
        thread::scope(|scope| {
            for thread in 0..8 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..2_000 {
                        let handle = table.insert(Arc::new((thread, number))).unwrap();
                        assert_eq!(table.remove(handle).as_deref(), Ok(&(thread, number)));
                    }
                });
            }
        });
    }
}
