//! Histograms of durations, without a lock on the path of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Bounds for a duration that a client waits for, in microseconds: from a heartbeat in memory to an abandoned
/// request.
const OF_ANSWERS: &[u64] = &[
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Bounds for background work, in microseconds: from a hundredth of a second to an hour.
const OF_WORK: &[u64] = &[
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    900_000_000,
    3_600_000_000,
];

/// A lock-free histogram of durations: heartbeats are counted from all cores at once. A clone counts into the
/// same histogram.
#[derive(Clone, Debug)]
pub struct Timing(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// The upper bounds of the buckets, in microseconds.
    bounds: &'static [u64],
    /// A bucket for each bound, and a last bucket for durations beyond every bound.
    buckets: Box<[AtomicU64]>,
    sum_nanos: AtomicU64,
}

impl Timing {
    /// Returns a histogram for durations that a client waits for.
    pub fn of_answers() -> Self {
        Self::within(OF_ANSWERS)
    }

    /// Returns a histogram for background work.
    pub fn of_work() -> Self {
        Self::within(OF_WORK)
    }

    fn within(bounds: &'static [u64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts { bounds, buckets, sum_nanos: AtomicU64::new(0) }))
    }

    /// Counts a duration in the first bucket with a bound of at least the duration.
    pub fn observe(&self, took: Duration) {
        let Counts { bounds, buckets, sum_nanos } = &*self.0;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let place = bounds.iter().position(|bound| nanos <= bound * 1_000).unwrap_or(bounds.len());
        if let Some(bucket) = buckets.get(place) {
            bucket.fetch_add(1, Relaxed);
        }
        sum_nanos.fetch_add(nanos, Relaxed);
    }
}

impl EncodeMetric for Timing {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        const MICROS: f64 = 1e6;
        const NANOS: f64 = 1e9;
        let Counts { bounds, buckets, sum_nanos } = &*self.0;
        let ends = bounds.iter().map(|bound| *bound as f64 / MICROS).chain([f64::INFINITY]);
        let counts = buckets.iter().map(|bucket| bucket.load(Relaxed));
        let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = sum_nanos.load(Relaxed) as f64 / NANOS;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Timing {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn each_is_counted_in_the_first_bucket_that_holds_it() {
        let timing = Timing::of_answers();
        for micros in [50, 51, 30_000_000, 30_000_001] {
            timing.observe(Duration::from_micros(micros));
        }
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("took_seconds", "How long", timing);
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "took_seconds_bucket{le=\"0.00005\"} 1",
            "took_seconds_bucket{le=\"0.0001\"} 2",
            "took_seconds_bucket{le=\"10.0\"} 2",
            "took_seconds_bucket{le=\"30.0\"} 3",
            "took_seconds_bucket{le=\"+Inf\"} 4",
            "took_seconds_count 4",
            "took_seconds_sum 60.000102",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}: {text}");
        }
    }
}
