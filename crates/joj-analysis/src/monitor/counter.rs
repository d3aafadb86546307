//! How far a counter of the kernel went: it wraps, and it starts over with a new device.

/// Values of a 32-bit counter. Times in diskstats are 32-bit milliseconds on every kernel (49 days), counts of interrupts
/// 32-bit too, and on 32-bit kernels nearly everything is.
const WRAP: u64 = 1 << 32;

/// A counter wrapped only if it went from the last quarter of its values to the first: in an interval of a minute that
/// is more than any device does, and a device that was replaced rarely looks like it.
const QUARTER: u64 = 1 << 30;

/// How far a counter went from `then` to `now`; `None` where it fell without wrapping: it began anew.
pub fn grown(then: u64, now: u64) -> Option<u64> {
    if now >= then {
        return Some(now - then);
    }
    let wrapped = (WRAP - QUARTER..WRAP).contains(&then) && now < QUARTER;
    wrapped.then(|| now + WRAP - then)
}

/// [`grown`] for each of a device's counters; `None` for all where one began anew: the device is another one.
pub fn all_grown(then: &[u64], now: &[u64]) -> Option<Vec<u64>> {
    then.iter().zip(now).map(|(then, now)| grown(*then, *now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_is_counted_through_and_a_fall_is_not() {
        assert_eq!(grown(5, 5), Some(0));
        assert_eq!(grown(5, 12), Some(7));
        assert_eq!(grown(u64::from(u32::MAX), 4), Some(5));
        assert_eq!(grown(WRAP - QUARTER, 0), Some(QUARTER));
        assert_eq!(grown(1_000, 3), None, "began anew");
        assert_eq!(grown(WRAP - QUARTER - 1, 0), None, "too far for a wrap");
        assert_eq!(grown(WRAP - 1, QUARTER), None, "too far for a wrap");
        assert_eq!(grown(WRAP + 7, 3), None, "a counter of 64 bits");
        assert_eq!(grown(u64::MAX, 0), None);
    }

    #[test]
    fn one_counter_that_began_anew_makes_it_another_device() {
        assert_eq!(all_grown(&[1, WRAP - 1], &[2, 1]), Some(vec![1, 2]));
        assert_eq!(all_grown(&[1, 500], &[2, 1]), None);
    }
}
