//! The starts of the address ranges of expandable segments.

use super::requests::Requests;
use super::terms::AMPLE;
use allocator::rounding::{LARGE_BUFFER, SMALL_BUFFER};
use trace::event::Action;
use trace::units::Stream;
use trace::{DeviceTrace, Tags};

/// The first memory that a range of addresses got.
pub(super) struct Opening {
    pub(super) event: u32,
    pub(super) address: u64,
    /// The stream, and whether it serves small requests.
    pub(super) kind: (Stream, bool),
}

/// Returns where ranges of addresses begin. Each reaches as far as an expandable segment of this device does.
pub(super) fn openings(trace: &DeviceTrace, tags: &Tags, read: &Requests) -> Vec<Opening> {
    let total = read.capacity.unwrap_or(AMPLE);
    let page = |is_small: bool| if is_small { SMALL_BUFFER } else { LARGE_BUFFER };
    let length =
        |is_small: bool| total.saturating_add(total / 8).div_ceil(page(is_small)).saturating_mul(page(is_small));
    let mut ranges = Vec::new();
    for segment in read.start.iter().filter(|segment| segment.is_expandable) {
        opens(&mut ranges, (segment.address.0, segment.size), length(segment.is_small));
    }
    let mut found = Vec::new();
    for (number, event) in (0..).zip(trace.events.iter()) {
        let (address, is_small) = (event.address.0, event.size < LARGE_BUFFER);
        match event.action {
            Action::SegmentUnmap => closes(&mut ranges, address, event.size),
            Action::SegmentMap if opens(&mut ranges, (address, event.size), length(is_small)) => {
                found.push(Opening { event: number, address, kind: (tags.get(event.tag).stream, is_small) });
            }
            _ => {}
        }
    }
    found
}

/// A range of addresses: where it begins, how far it reaches, and how much of it has memory. Without memory it is given back.
struct AddressSpan {
    from: u64,
    length: u64,
    mapped: u64,
}

impl AddressSpan {
    fn holds(&self, address: u64) -> bool {
        (self.from..self.from.saturating_add(self.length)).contains(&address)
    }
}

/// Adds mapped memory; returns whether it is the first of its range.
fn opens(ranges: &mut Vec<AddressSpan>, (address, size): (u64, u64), length: u64) -> bool {
    if let Some(range) = ranges.iter_mut().find(|range| range.holds(address)) {
        range.mapped = range.mapped.saturating_add(size);
        return false;
    }
    ranges.push(AddressSpan { from: address, length, mapped: size });
    true
}

/// Removes mapped memory.
fn closes(ranges: &mut Vec<AddressSpan>, address: u64, size: u64) {
    if let Some(place) = ranges.iter().position(|range| range.holds(address))
        && let Some(range) = ranges.get_mut(place)
    {
        range.mapped = range.mapped.saturating_sub(size);
        if range.mapped == 0 {
            ranges.swap_remove(place);
        }
    }
}
