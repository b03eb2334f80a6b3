//! The names of values in links.

use super::{Listing, settings};
use crate::{
    AllocationOrder, Axis, ColorBy, ComparedAxis, ComparedMoment, ComparedOrder, ComparedView, EventColumn, Measure,
    RangeOrder, SegmentGroup, SegmentLayout, SegmentOrder,
};

pub(super) const AXES: [(Axis, &str); 2] = [(Axis::Time, "time"), (Axis::Event, "event")];

pub(super) const LAYOUTS: [(SegmentLayout, &str); 2] =
    [(SegmentLayout::ToScale, "scale"), (SegmentLayout::Packed, "packed")];

pub(super) const SEGMENT_ORDERS: [(SegmentOrder, &str); 4] = [
    (SegmentOrder::Address, "address"),
    (SegmentOrder::Size, "size"),
    (SegmentOrder::Stream, "stream"),
    (SegmentOrder::Free, "free"),
];

pub(super) const SEGMENT_GROUPS: [(SegmentGroup, &str); 4] = [
    (SegmentGroup::None, "none"),
    (SegmentGroup::Pool, "pool"),
    (SegmentGroup::Stream, "stream"),
    (SegmentGroup::PoolAndStream, "both"),
];

pub(super) const ALLOCATION_ORDERS: [(AllocationOrder, &str); AllocationOrder::ALL.len()] = [
    (AllocationOrder::Bytes, "bytes"),
    (AllocationOrder::Count, "count"),
    (AllocationOrder::Made, "made"),
    (AllocationOrder::Lifetime, "lifetime"),
    (AllocationOrder::Site, "site"),
    (AllocationOrder::FreedBy, "freed"),
];

pub(super) const LISTINGS: [(Listing, &str); 3] =
    [(Listing::AtCursor, "cursor"), (Listing::AtPeak, "peak"), (Listing::Growth, "growth")];

pub(super) const COMPARED_MOMENTS: [(ComparedMoment, &str); 4] = [
    (ComparedMoment::Common, "common"),
    (ComparedMoment::Peak, "peak"),
    (ComparedMoment::End, "end"),
    (ComparedMoment::Cursor, "cursor"),
];

pub(super) const COMPARED_AXES: [(ComparedAxis, &str); 3] =
    [(ComparedAxis::Steps, "steps"), (ComparedAxis::Time, "time"), (ComparedAxis::Events, "events")];

pub(super) const COMPARED_VIEWS: [(ComparedView, &str); 5] = [
    (ComparedView::None, "none"),
    (ComparedView::Timeline, "timeline"),
    (ComparedView::Segments, "segments"),
    (ComparedView::Flame, "flame"),
    (ComparedView::Heatmap, "heatmap"),
];

pub(super) const COMPARED_ORDERS: [(ComparedOrder, &str); ComparedOrder::ALL.len()] = [
    (ComparedOrder::Growth, "growth"),
    (ComparedOrder::Before, "a"),
    (ComparedOrder::After, "b"),
    (ComparedOrder::Line, "line"),
    (ComparedOrder::Found, "match"),
];

pub(super) const ORDERS: [(RangeOrder, &str); 6] = [
    (RangeOrder::Kept, "kept"),
    (RangeOrder::Growth, "growth"),
    (RangeOrder::Churn, "churn"),
    (RangeOrder::Allocated, "allocated"),
    (RangeOrder::Freed, "freed"),
    (RangeOrder::Waiting, "waiting"),
];

pub(super) const COLORS: [(ColorBy, &str); 6] = [
    (ColorBy::Site, "site"),
    (ColorBy::Size, "size"),
    (ColorBy::Stream, "stream"),
    (ColorBy::Pool, "pool"),
    (ColorBy::Lifetime, "lifetime"),
    (ColorBy::Category, "category"),
];

pub(super) const MEASURES: [(Measure, &str); 15] = [
    (Measure::Requested, "requested"),
    (Measure::Allocated, "allocated"),
    (Measure::Active, "active"),
    (Measure::Reserved, "reserved"),
    (Measure::Unallocated, "unallocated"),
    (Measure::Cached, "cached"),
    (Measure::InactiveSplit, "inactive_split"),
    (Measure::CachedWhole, "cached_whole"),
    (Measure::Rounding, "rounding"),
    (Measure::LargestGap, "largest_gap"),
    (Measure::LargestServableSmall, "largest_servable_small"),
    (Measure::LargestServableLarge, "largest_servable_large"),
    (Measure::Gaps, "gaps"),
    (Measure::UnusableShare, "unusable_share"),
    (Measure::FragmentationIndex, "fragmentation_index"),
];

pub(super) const COLUMNS: [(EventColumn, &str); EventColumn::ALL.len()] = [
    (EventColumn::Number, "number"),
    (EventColumn::Time, "time"),
    (EventColumn::Since, "since"),
    (EventColumn::Action, "action"),
    (EventColumn::Size, "size"),
    (EventColumn::Address, "address"),
    (EventColumn::Stream, "stream"),
    (EventColumn::Site, "site"),
];

/// Returns the name of an order of the table of allocations in links and test ids.
pub fn allocation_order_name(order: AllocationOrder) -> &'static str {
    name_of(&ALLOCATION_ORDERS, &order)
}

/// Returns a column's name in links and test ids.
pub fn column_name(column: EventColumn) -> &'static str {
    name_of(&COLUMNS, &column)
}

/// Each key of a link that is no setting with what it restores, in words for people.
const WORDS: [(&str, &str); 31] = [
    ("file", "the file's name"),
    ("hash", "the file's identity"),
    ("session", "the session"),
    ("open", "the file"),
    ("job", "the job"),
    ("dev", "the device"),
    ("tab", "the tab"),
    ("x", "the x axis"),
    ("w", "the visible part"),
    ("y", "the height"),
    ("cur", "the cursor"),
    ("sel", "the selection"),
    ("r", "the range"),
    ("steps", "the compared steps"),
    ("peaks", "the compared steps"),
    ("base", "the run that it is compared with"),
    ("basecur", "the cursor of that run"),
    ("f", "a filter"),
    ("q", "the search"),
    ("curve", "a curve"),
    ("segzoom", "the zoom of the segments"),
    ("zoom", "the zoom of the flame graph"),
    ("act", "the filter of the event list"),
    ("part", "the part of the heatmap"),
    ("rows", "the zoom of the heatmap"),
    ("pin", "a pin"),
    ("split", "the second view"),
    ("sort", "the order of the event list"),
    ("hide", "the columns of the event list"),
    ("flameops", "a transform of the flame graph"),
    ("sandwich", "the callers and callees"),
];

/// Returns what a key restores; `None` for an unknown key.
pub(super) fn word(key: &str) -> Option<&'static str> {
    WORDS.iter().chain(settings::WORDS).find(|(known, _)| *known == key).map(|(_, word)| *word)
}

/// Returns the name of an order of compared lines in links and test ids.
pub fn compared_order_name(order: ComparedOrder) -> &'static str {
    name_of(&COMPARED_ORDERS, &order)
}

/// Returns a measure's name in links and test ids, which is that of its column in `vramscope curves`.
pub fn measure_name(measure: Measure) -> &'static str {
    name_of(&MEASURES, &measure)
}

pub(super) fn name_of<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(v, _)| v == value).map_or("", |(_, name)| name)
}

pub(super) fn by_name<T: Copy>(names: &[(T, &'static str)], name: &str) -> Option<T> {
    names.iter().find(|(_, n)| *n == name).map(|(v, _)| *v)
}
