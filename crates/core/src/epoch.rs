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

/// Returns `epoch` with its counter raised to `counter`, or `epoch` unchanged if its counter is not lower. The random
/// bits stay.
pub fn epoch_not_before(epoch: u64, counter: u32) -> u64 {
    let missing = u64::from(counter).saturating_sub(epoch_counter(epoch));
    epoch + (missing << RANDOM_BITS)
}

/// Returns the counter of `epoch`, which grows with each raise of the bucket.
pub fn epoch_counter(epoch: u64) -> u64 {
    epoch >> RANDOM_BITS
}

#[cfg(test)]
mod tests {
    use super::{epoch_after, epoch_counter, epoch_not_before};

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
    fn a_lower_counter_is_raised_and_the_random_bits_stay() {
        let epoch = epoch_after(9 << 16, 77);
        assert_eq!(epoch_not_before(epoch, 10), epoch);
        assert_eq!(epoch_not_before(epoch, 3), epoch);
        assert_eq!(epoch_not_before(epoch, u32::MAX), (u64::from(u32::MAX) << 16) | 77);
    }

    #[test]
    fn two_epochs_after_the_same_one_are_not_the_same() {
        assert_ne!(epoch_after(9, 1), epoch_after(9, 2));
    }
}
