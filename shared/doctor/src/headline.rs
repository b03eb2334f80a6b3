//! The verdict in one line: what ran out, and the numbers that show it.

use query::diagnosis::{Cause, FailedRequest};
use trace::units::{Bytes, counted, distinguished};

use super::course::Spike;
use super::rise::Rise;

/// Returns the headline of the verdict on a failure whose cause, with the line that led there, is known.
pub(super) fn of_failure(failed: &FailedRequest, rise: Option<&Rise>, spike: Option<&Spike>) -> String {
    let request = Bytes(failed.requested);
    if let Some(rise) = rise {
        return format!("Leak: {}, then {request} did not fit", rise.in_short());
    }
    if let Some(spike) = spike {
        return format!("Brief spike: {} for a moment, then {request} did not fit", Bytes(spike.bytes));
    }
    let whole = Bytes(failed.whole());
    match failed.cause {
        Cause::Limit => format!("Limit: {request} asked, {} free on the device", Bytes(failed.driver_free)),
        Cause::OtherProcess => {
            let others = Bytes(failed.held_by_others.unwrap_or_default());
            format!("Other processes: {others} of {whole} held by them, {request} asked{}", shortage(failed))
        }
        Cause::OutOfReach if failed.largest_servable >= failed.requested => {
            format!("Out of reach: {request} asked, a free gap of {} can't be used", Bytes(failed.largest_servable))
        }
        Cause::OutOfReach => {
            format!("Out of reach: {request} asked, {} free in another pool or stream", Bytes(failed.largest_gap))
        }
        Cause::Fragmented => format!("Fragmented: {request} asked, {}", gaps(failed)),
        _ => full(failed),
    }
}

/// Returns what is free in gaps, and how much of it in one piece.
fn gaps(failed: &FailedRequest) -> String {
    let gaps = counted(failed.gaps.into(), "gap");
    // Where the gaps alone are less than the request, the numbers must show why packing would have helped.
    if failed.cached < failed.requested && failed.gaps > 0 {
        let free = Bytes(failed.cached.saturating_add(failed.driver_free));
        return format!("{free} free at the driver and in {gaps}, none large enough");
    }
    let free = Bytes(failed.cached);
    let usable = Bytes(failed.largest_servable);
    match failed.largest_servable {
        0 => format!("{free} free in {gaps}, none for it"),
        _ if failed.gaps == 1 => format!("{free} free in {gaps}"),
        bytes if bytes == failed.largest_gap => format!("{free} free in {gaps}, the largest {usable}"),
        _ => format!("{free} free in {gaps}, the largest for it {usable}"),
    }
}

fn full(failed: &FailedRequest) -> String {
    let (request, whole) = (Bytes(failed.requested), Bytes(failed.whole()));
    let owner = if failed.capacity.is_some() { "the device has" } else { "this process could use" };
    if failed.requested > failed.whole() {
        return format!("Full: {request} asked, {owner} {whole} in all");
    }
    if failed.asked_of_driver > failed.whole() {
        let taken = Bytes(failed.asked_of_driver);
        return format!("Full: {request} asked, which takes {taken}, {owner} {whole} in all");
    }
    let (live, whole) = distinguished(Bytes(failed.allocated), Bytes(failed.whole()));
    match failed.cached.saturating_add(failed.driver_free) {
        0 => format!("Full: {request} asked, nothing free of {whole}"),
        _ if failed.fits_if_packed() => format!("Full: {live} of {whole} in live tensors, {request} asked"),
        left => format!("Full: {request} asked, {} free{}", Bytes(left), shortage(failed)),
    }
}

/// Returns how much a request lacked, even without fragmentation.
fn shortage(failed: &FailedRequest) -> String {
    if failed.fits_if_packed() { String::new() } else { format!(", {} short", Bytes(failed.missing)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_has_the_numbers_that_show_the_cause() {
        const MIB: u64 = 1 << 20;
        let failed = |cause, requested: u64, cached: u64, servable: u64, gap: u64, gaps, missing: u64| FailedRequest {
            cause,
            requested: requested * MIB,
            asked_of_driver: requested * MIB,
            cached: cached * MIB,
            largest_servable: servable * MIB,
            largest_gap: gap * MIB,
            gaps,
            missing: missing * MIB,
            allocated: 900 * MIB,
            active: 900 * MIB,
            capacity: Some(1024 * MIB),
            held_by_others: Some(300 * MIB),
            ..FailedRequest::default()
        };
        let cases = [
            (
                failed(Cause::Fragmented, 512, 592, 337, 337, 40, 0),
                "Fragmented: 512 MiB asked, 592 MiB free in 40 gaps, the largest 337 MiB",
            ),
            (
                failed(Cause::Fragmented, 512, 592, 64, 337, 40, 0),
                "Fragmented: 512 MiB asked, 592 MiB free in 40 gaps, the largest for it 64.0 MiB",
            ),
            (
                failed(Cause::Fragmented, 512, 592, 0, 337, 40, 0),
                "Fragmented: 512 MiB asked, 592 MiB free in 40 gaps, none for it",
            ),
            (failed(Cause::Fragmented, 512, 600, 337, 337, 1, 0), "Fragmented: 512 MiB asked, 600 MiB free in 1 gap"),
            (
                FailedRequest { driver_free: 200 * MIB, ..failed(Cause::Fragmented, 512, 337, 337, 337, 1, 0) },
                "Fragmented: 512 MiB asked, 537 MiB free at the driver and in 1 gap, none large enough",
            ),
            (failed(Cause::Full, 512, 124, 64, 64, 4, 388), "Full: 512 MiB asked, 124 MiB free, 388 MiB short"),
            (failed(Cause::Full, 512, 0, 0, 0, 0, 512), "Full: 512 MiB asked, nothing free of 1.00 GiB"),
            (failed(Cause::Full, 64, 124, 32, 32, 4, 0), "Full: 900 MiB of 1.00 GiB in live tensors, 64.0 MiB asked"),
            (failed(Cause::Full, 2048, 124, 32, 32, 4, 1924), "Full: 2.00 GiB asked, the device has 1.00 GiB in all"),
            (
                failed(Cause::OutOfReach, 64, 124, 32, 96, 4, 0),
                "Out of reach: 64.0 MiB asked, 96.0 MiB free in another pool or stream",
            ),
            (
                failed(Cause::OutOfReach, 64, 124, 96, 96, 4, 0),
                "Out of reach: 64.0 MiB asked, a free gap of 96.0 MiB can't be used",
            ),
            (
                failed(Cause::OtherProcess, 512, 24, 8, 8, 4, 288),
                "Other processes: 300 MiB of 1.00 GiB held by them, 512 MiB asked, 288 MiB short",
            ),
        ];
        for (failed, want) in cases {
            assert_eq!(of_failure(&failed, None, None), want);
        }
    }
}
