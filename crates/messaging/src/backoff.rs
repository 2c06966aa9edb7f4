//! Exponential back-off with jitter.

use std::time::Duration;

use backon::ExponentialBuilder;

/// Endless delays that double from `initial` to `max`, each shortened by up to a half at random.
pub(crate) const fn backoff(initial: Duration, max: Duration) -> ExponentialBuilder {
    // backon's jitter lengthens a delay to at most its double.
    let halved = ExponentialBuilder::new().with_min_delay(half(initial)).with_max_delay(half(max));
    halved.without_max_times().with_jitter()
}

const fn half(delay: Duration) -> Duration {
    Duration::from_millis(delay.as_millis() as u64 / 2)
}

#[cfg(test)]
mod tests {
    use backon::BackoffBuilder;

    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum_with_jitter_of_half() {
        let delays = backoff(Duration::from_secs(1), Duration::from_secs(60)).build();
        for (delay, full) in delays.zip([1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs)) {
            assert!(full / 2 <= delay && delay <= full, "{full:?}: {delay:?}");
        }
    }
}
