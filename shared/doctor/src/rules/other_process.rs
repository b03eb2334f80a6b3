//! Memory of the device that others hold, known from an out-of-memory event and the device's capacity.

use super::RuleContext;
use super::thresholds::{CONTEXT_BYTES, OTHERS_PERCENT, is_share};
use query::finding::{Evidence, Finding, FindingCode, Remedy};
use trace::units::{Bytes, Count};

pub(super) fn check(context: &RuleContext<'_>) -> Vec<Finding> {
    let (trace, replay) = (context.case.trace, context.case.replay);
    let event = context.failed.and_then(|position| trace.events.get((position as usize).checked_sub(1)?));
    let (Some(position), Some(event), Some(capacity)) = (context.failed, event, context.case.capacity) else {
        return Vec::new();
    };
    // Segments may be missing from the trace, and their memory is not held by others.
    if !trace.losses.is_empty() {
        return Vec::new();
    }
    let (free, reserved) = (event.address.0, replay.state_at(position).totals.reserved);
    let others = capacity.saturating_sub(free).saturating_sub(reserved);
    if others < CONTEXT_BYTES || !is_share(others, capacity, OTHERS_PERCENT) {
        return Vec::new();
    }
    let message = format!(
        "When memory ran out (event {}), {} of the device's {} was neither reserved by this process's allocator ({}) nor \
         free ({}): other processes hold it, or CUDA and libraries of this one do.",
        Count(position.into()),
        Bytes(others),
        Bytes(capacity),
        Bytes(reserved),
        Bytes(free),
    );
    let finding = Finding::new(FindingCode::OtherProcess, message)
        .at(position)
        .with_bytes(others)
        .with_evidence(Evidence::Window(position.saturating_sub(1), position))
        .with_remedy(
            Remedy::advice("Look at what else runs on the device: nvidia-smi lists its processes.")
                .with_copy("nvidia-smi"),
        );
    vec![finding]
}

#[cfg(test)]
mod tests {
    use super::super::testing::trace;
    use super::*;

    fn found(free: u64, capacity: Option<u64>) -> Vec<String> {
        let trouble = trace(&format!("segment_alloc 0x10000000 {}\noom {free} 5000000000", 10_u64 << 30));
        match capacity {
            Some(bytes) => trouble.with_capacity(bytes),
            None => trouble,
        }
        .messages(FindingCode::OtherProcess)
    }

    #[test]
    fn what_is_neither_reserved_nor_free_is_held_by_others() {
        assert_eq!(
            found(1 << 30, Some(24 << 30)),
            [
                "When memory ran out (event 2), 13.0 GiB of the device's 24.0 GiB was neither reserved by this process's \
              allocator (10.0 GiB) nor free (1.00 GiB): other processes hold it, or CUDA and libraries of this one do."
            ]
        );
    }

    #[test]
    fn a_context_is_no_other_process() {
        assert_eq!(found((14 << 30) - (600 << 20), Some(24 << 30)), [""; 0]);
        assert_eq!(found(20 << 30, Some(24 << 30)), [""; 0]);
        assert_eq!(found(1 << 30, None), [""; 0]);
    }
}
