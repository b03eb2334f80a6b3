//! Memory that `roundup_power2_divisions` adds to requests.

use super::RuleContext;
use super::thresholds::{LEAST_BYTES, ROUNDING_PERCENT, is_share};
use allocator::rounding::round_size;
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use trace::Divisions;
use trace::units::{Bytes, Count};

/// No rounding beyond multiples of 512 bytes.
const PLAIN: Divisions = [0; 16];

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let divisions = &context.case.settings.roundup_power2_divisions;
    if divisions.iter().all(|divisions| *divisions < 2) {
        return Vec::new();
    }
    let (replay, position) = (context.case.replay, context.case.usage.peak_position);
    let (mut added, mut plain, mut largest) = (0_u64, 0_u64, (0_u64, 0_u32));
    for number in replay.active_at(position) {
        let requested = replay.allocations.requested.get(number as usize).unwrap_or(0);
        let least = round_size(&PLAIN, requested);
        let more = round_size(divisions, requested).saturating_sub(least);
        (added, plain) = (added.saturating_add(more), plain.saturating_add(least));
        largest = largest.max((more, number));
    }
    if added < LEAST_BYTES || !is_share(added, plain.saturating_add(added), ROUNDING_PERCENT) {
        return Vec::new();
    }
    let stack = replay.allocations.get(largest.1).map(|allocation| allocation.stack).unwrap_or_default();
    let message = format!(
        "roundup_power2_divisions takes {} more than rounding to 512 bytes would at the peak of requested memory (after \
         event {}): {} instead of {}. One allocation of {} alone takes {} more.",
        Bytes(added),
        Count(position.into()),
        Bytes(plain.saturating_add(added)),
        Bytes(plain),
        context.line(stack),
        Bytes(largest.0),
    );
    let finding = Finding::new(FindingCode::Rounding, message)
        .at(position)
        .with_bytes(added)
        .with_evidence(Evidence::Allocation(largest.1))
        .with_remedy(Remedy::advice(
            "Set more divisions: with 8, a request is rounded up by an eighth at most. Or leave the setting out.",
        ));
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;
    use trace::Settings;

    fn found(divisions: u64, request: u64) -> Vec<String> {
        let lines = format!(
            "segment_alloc 0x10000000 209715200
             alloc 0x10000000 {request} pad@/m/a.py:1
             alloc 0x14000000 {request} pad@/m/a.py:1"
        );
        let settings = Settings { roundup_power2_divisions: [divisions; 16], ..Settings::default() };
        trace(&lines).with_settings(settings).messages(FindingCode::Rounding)
    }

    #[test]
    fn what_the_setting_adds_is_counted_against_plain_rounding() {
        assert_eq!(
            found(2, 34_603_008),
            [
                "roundup_power2_divisions takes 30.0 MiB more than rounding to 512 bytes would at the peak of requested memory \
              (after event 3): 96.0 MiB instead of 66.0 MiB. One allocation of m/a.py:1 (pad) alone takes 15.0 MiB more."
            ]
        );
    }

    #[test]
    fn fine_divisions_cost_little() {
        assert_eq!(found(32, 34_603_008), [""; 0]);
        assert_eq!(found(2, 33_554_432), [""; 0]);
        assert_eq!(found(0, 34_603_008), [""; 0]);
    }
}
