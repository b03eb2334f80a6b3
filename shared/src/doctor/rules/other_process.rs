//! Memory of the device that others hold, known from an out-of-memory event and the device's capacity.

use super::Ground;
use super::thresholds::{CONTEXT_BYTES, OTHERS_PERCENT, is_share};
use crate::analysis::oom;
use crate::event::Action;
use crate::finding::{Evidence, Finding, FindingCode, Remedy};
use crate::units::{Bytes, Count};

pub(super) fn check(ground: &Ground<'_>) -> Vec<Finding> {
    let (trace, replay) = (ground.case.trace, ground.case.replay);
    let position = oom::decisive_position(trace);
    let event = position.and_then(|position| trace.events.get(position as usize - 1));
    let (Some(position), Some(event), Some(capacity)) = (position, event, ground.case.capacity) else {
        return Vec::new();
    };
    if event.action != Action::Oom {
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
            Remedy::advice("Look at what else runs on the device: nvidia-smi lists its processes.").with_copy("nvidia-smi"),
        );
    vec![finding]
}
