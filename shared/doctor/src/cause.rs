//! The cause of a failure, from the memory at that moment alone. The verdict adds what led there (a leak, a spike).

use query::diagnosis::{Cause, FailedRequest};
use trace::units::Bytes;

/// From this percentage on, a device is full if memory was still rising to a new high.
const NEARLY_FULL_PERCENT: u64 = 90;
/// From this percentage on, no packing leaves room for anything else.
const BRIMFUL_PERCENT: u64 = 99;
/// Other processes count from this percentage of the device on. Every process's own CUDA context takes some.
const OTHERS_PERCENT: u64 = 10;
/// From this percentage on, other processes hold most of a device.
const MOST_PERCENT: u64 = 50;
/// Others hold far more than a request if they hold this many times as much.
const FAR_MORE: u64 = 4;

/// The part of the memory reported as free that a driver may be unable to give. An H200 with driver 580 refused 42 MiB
/// of 43.1 MiB.
const DRIVER_KEEPS: u64 = 16 << 20;
/// The driver's page.
const PAGE: u64 = 2 << 20;

/// Returns whether a driver with so much free memory would have given what it was asked for, so that something else stood in
/// the way.
pub const fn is_enough(driver_free: u64, asked: u64) -> bool {
    driver_free >= asked.saturating_add(DRIVER_KEEPS)
}

/// Returns the free memory that a driver could give when it refused `asked` bytes.
pub(super) const fn usable(driver_free: u64, asked: u64) -> u64 {
    if driver_free < asked || is_enough(driver_free, asked) { driver_free } else { asked.saturating_sub(PAGE) }
}

/// Says that a driver refused what it reported as free, if it did; begins with a space.
pub fn refused_free(driver_free: u64, asked: u64) -> String {
    if driver_free < asked {
        return String::new();
    }
    let (asked, free) = (Bytes(asked), Bytes(driver_free));
    format!(" The driver refused {asked}, though it reported {free} as free: it can't always give the last few MiB.")
}

/// Returns whether `part` is at least this many percent of `whole`.
fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent) && part > 0
}

/// Returns the cause of a failure whose sizes are known.
pub(super) fn of(failed: &FailedRequest) -> Cause {
    let FailedRequest { requested, asked_of_driver, driver_free, largest_servable, largest_gap, .. } = *failed;
    if is_enough(driver_free, asked_of_driver) {
        return Cause::Limit;
    }
    let others = failed.held_by_others.zip(failed.capacity);
    let is_of_others =
        others.is_some_and(|(others, capacity)| is_of_others(others, capacity, failed.missing, asked_of_driver));
    if !failed.fits_if_packed() {
        return if is_of_others { Cause::OtherProcess } else { Cause::Full };
    }
    // With a gap that would do in its own pool, the request was for another pool than the trace says.
    match largest_gap >= requested || largest_servable >= requested {
        true => Cause::OutOfReach,
        false if is_of_others => Cause::OtherProcess,
        false => Cause::Fragmented,
    }
}

/// Returns whether live tensors left so little that a program whose memory still rises has no use for it.
pub(super) fn is_nearly_full(failed: &FailedRequest) -> bool {
    is_share(failed.active, failed.reachable(), NEARLY_FULL_PERCENT)
}

/// Returns whether even perfect packing would have left next to nothing, and the gaps alone could not have served the request: to pack
/// them would have helped this request and none after it.
pub(super) fn is_brimful(failed: &FailedRequest) -> bool {
    let used = failed.active.saturating_add(failed.requested);
    failed.cached < failed.requested && is_share(used, failed.reachable(), BRIMFUL_PERCENT)
}

/// Returns whether what others held of a device is to blame: it is what a request lacked, or, if all free memory in one
/// piece would have been enough (`missing` is 0), most of the device and far more than the request.
pub fn is_of_others(others: u64, device: u64, missing: u64, request: u64) -> bool {
    if missing > 0 {
        others >= missing && is_share(others, device, OTHERS_PERCENT)
    } else {
        others >= request.saturating_mul(FAR_MORE) && is_share(others, device, MOST_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_follows_from_what_was_free_where() {
        // Requested, asked of the driver, driver free, active, cached, the largest gaps in reach and in all, missing.
        type Sizes = (u64, u64, u64, u64, u64, u64, u64, u64);
        let cases: [(Sizes, Cause); 11] = [
            ((10, 10, 2, 100, 3, 3, 3, 5), Cause::Full),
            ((10, 10, 2, 100, 8, 7, 7, 0), Cause::Fragmented),
            // However little is left: perfect packing would have been enough.
            ((10, 10, 2, 900, 8, 7, 7, 0), Cause::Fragmented),
            ((10, 10, 2, 100, 30, 7, 12, 0), Cause::OutOfReach),
            ((10, 10, 2, 100, 30, 12, 12, 0), Cause::OutOfReach),
            ((10, 10, 10 + DRIVER_KEEPS, 100, 0, 0, 0, 0), Cause::Limit),
            // The driver may be unable to give the last few MiB.
            ((10, 10, 12, 100, 0, 0, 0, 1), Cause::Full),
            ((10, 10, 12, 100, 8, 7, 7, 0), Cause::Fragmented),
            // Enough for the request, but not for the segment or the page that it needs.
            ((4, 20, 12, 100, 0, 0, 0, 4), Cause::Full),
            ((4, 20, 12, 100, 8, 2, 2, 0), Cause::Fragmented),
            ((4, 20, 20 + DRIVER_KEEPS, 100, 0, 0, 0, 0), Cause::Limit),
        ];
        for (sizes, want) in cases {
            let (requested, asked_of_driver, driver_free, active, cached, largest_servable, largest_gap, missing) =
                sizes;
            let failed = FailedRequest {
                requested,
                asked_of_driver,
                driver_free,
                active,
                cached,
                largest_servable,
                largest_gap,
                missing,
                ..FailedRequest::default()
            };
            assert_eq!(of(&failed), want, "{sizes:?}");
        }
    }

    #[test]
    fn where_packing_leaves_next_to_nothing_the_device_is_full() {
        let is_brimful = |active, cached, driver_free| {
            is_brimful(&FailedRequest { requested: 100, active, cached, driver_free, ..FailedRequest::default() })
        };
        assert!(is_brimful(890, 30, 75), "5 of 995 left");
        assert!(!is_brimful(800, 30, 85), "15 of 915 left");
        assert!(!is_brimful(890, 105, 0), "the gaps would have been enough");
    }

    #[test]
    fn other_processes_count_if_they_held_what_was_missing() {
        let cause = |others, missing| {
            of(&FailedRequest {
                requested: 10,
                asked_of_driver: 10,
                capacity: Some(100),
                held_by_others: others,
                missing,
                active: 50,
                ..FailedRequest::default()
            })
        };
        assert_eq!(cause(Some(40), 10), Cause::OtherProcess);
        assert_eq!(cause(Some(9), 5), Cause::Full, "a context");
        assert_eq!(cause(Some(40), 50), Cause::Full);
        assert_eq!(cause(None, 10), Cause::Full);
        // Packing would have helped, but others hold most of the device.
        assert_eq!(cause(Some(50), 0), Cause::OtherProcess);
        assert_eq!(cause(Some(49), 0), Cause::Fragmented);
        assert_eq!([is_of_others(60, 100, 0, 15), is_of_others(60, 100, 0, 16)], [true, false]);
    }
}
