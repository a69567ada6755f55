//! Epochs of buckets.
//!
//! An epoch is a number with a counter in the upper bits and random bits below. The counter orders the epochs
//! of a bucket. The random bits distinguish two epochs with an equal counter, as arise after a ledger has
//! forgotten a raise.

/// Random bits of an epoch. Registries store an epoch in 48 bits, so 32 bits remain for the counter.
const RANDOM_BITS: u32 = 16;

/// Returns an epoch after `last`. `random` must differ between raises.
pub fn epoch_after(last: u64, random: u16) -> u64 {
    ((epoch_counter(last) + 1) << RANDOM_BITS) | u64::from(random)
}

/// Returns the number of raises of the bucket up to `epoch`.
pub fn epoch_counter(epoch: u64) -> u64 {
    epoch >> RANDOM_BITS
}

#[cfg(test)]
mod tests {
    use super::{epoch_after, epoch_counter};

    #[test]
    fn an_epoch_is_after_every_one_that_it_follows_whatever_is_random() {
        let mut last = 0;
        for (raise, random) in [(1, 7), (2, 0), (3, u16::MAX), (4, 0), (5, u16::MAX)] {
            let next = epoch_after(last, random);
            assert!(next > last);
            assert_eq!(epoch_counter(next), raise);
            last = next;
        }
    }

    #[test]
    fn two_epochs_after_the_same_one_are_not_the_same() {
        assert_ne!(epoch_after(9, 1), epoch_after(9, 2));
    }
}
