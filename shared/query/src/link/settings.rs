//! The tabs of the page and the settings of its views: what a person chooses, whatever the file.
//!
//! A row of the table is all that a setting needs to be set, restored by Back, carried by links and, if it says
//! `remembered`, kept for the next file and the next visit. What has no list of named values follows after the table: how it
//! is written in a link is said in [`encode`](super::encode) and [`parse`](super::parse), all else is the same.

use super::Listing;
use super::names::{
    ALLOCATION_ORDERS, COLORS, COMPARED_AXES, COMPARED_MOMENTS, COMPARED_ORDERS, COMPARED_VIEWS, LAYOUTS, LISTINGS,
    ORDERS, SEGMENT_GROUPS, SEGMENT_ORDERS, by_name, name_of,
};
use crate::{
    AllocationOrder, ColorBy, ComparedAxis, ComparedMoment, ComparedOrder, ComparedView, EventColumn, EventOrder,
    HeatmapPart, Measure, RangeOrder, SegmentGroup, SegmentLayout, SegmentOrder, Transform, Window,
};

/// The view that fills the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The stacked allocations over time.
    #[default]
    Timeline,
    /// The segments and their blocks at the cursor.
    Segments,
    /// The active allocations at the cursor, by stack.
    Flame,
    /// The list of events.
    Events,
    /// The findings.
    Findings,
    /// The fragmentation over time.
    Heatmap,
    /// The requests under other settings.
    WhatIf,
    /// The table of allocations.
    Allocations,
    /// What changed from another run.
    Compare,
}

impl Tab {
    /// The tabs in the order of the page.
    pub const ALL: [Self; 9] = [
        Self::Timeline,
        Self::Segments,
        Self::Flame,
        Self::Events,
        Self::Findings,
        Self::Heatmap,
        Self::WhatIf,
        Self::Allocations,
        Self::Compare,
    ];

    /// Returns the tab's name in links and test ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Segments => "segments",
            Self::Flame => "flame",
            Self::Events => "events",
            Self::Findings => "findings",
            Self::Heatmap => "heatmap",
            Self::WhatIf => "whatif",
            Self::Allocations => "allocations",
            Self::Compare => "compare",
        }
    }
}

/// Defines the settings. Each row has the setting's field and variant with its type and default; in links its key with the
/// names of its values, of which a default may have none; and in words for people what it restores.
macro_rules! settings {
    ($(
        $(#[$doc:meta])*
        $field:ident: $variant:ident($type:ty) = $default:expr,
        $key:literal = $names:expr, $words:literal $(, $remembered:ident)?;
    )*
    --- without names --- $(
        $(#[$plain_doc:meta])*
        $plain:ident: $plain_type:ty;
    )*) => {
        /// The settings of the views.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $($(#[$doc])* pub $field: $type,)*
            $($(#[$plain_doc])* pub $plain: $plain_type,)*
        }

        /// One setting with its value.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Setting {
            $($(#[$doc])* $variant($type),)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* $($plain: Default::default(),)* }
            }
        }

        impl Settings {
            /// Sets one of them.
            pub fn set(&mut self, setting: Setting) {
                match setting {
                    $(Setting::$variant(value) => self.$field = value,)*
                }
            }

            /// Takes over those of others that are remembered.
            pub fn remember(&mut self, others: &Self) {
                $($(
                    let $remembered = others.$field;
                    self.$field = $remembered;
                )?)*
            }

            /// Returns the parts of a link for those that differ from their defaults: key and value.
            pub(super) fn parts(&self) -> Vec<(&'static str, &'static str)> {
                let mut parts = Vec::new();
                $(
                    if self.$field != $default {
                        parts.push(($key, name_of(&$names, &self.$field)));
                    }
                )*
                parts
            }

            /// Sets the one with a key. Returns `None` and changes nothing if there is none, or the value is invalid.
            pub(super) fn take(&mut self, key: &str, value: &str) -> Option<()> {
                match key {
                    $($key => self.$field = by_name(&$names, value)?,)*
                    _ => return None,
                }
                Some(())
            }
        }

        #[cfg(test)]
        impl Setting {
            /// Returns every setting with each of its values that has a name.
            pub(super) fn all() -> Vec<Self> {
                let mut all = Vec::new();
                $(all.extend($names.iter().map(|(value, _)| Self::$variant(*value)));)*
                all
            }
        }

        /// Each key with what it restores, in words for people.
        pub(super) const WORDS: &[(&str, &str)] = &[$(($key, $words),)*];
    };
}

settings! {
    /// The moment whose memory is listed by line or class.
    listing: Listing(Listing) = Listing::AtCursor,
    "list" = LISTINGS, "the moment of the lists";

    /// What colours represent.
    color_by: ColorBy(ColorBy) = ColorBy::Site,
    "color" = COLORS, "the colours", remembered;

    /// The layout of the segment map.
    segment_layout: SegmentLayout(SegmentLayout) = SegmentLayout::ToScale,
    "seg" = LAYOUTS, "the layout of the segments", remembered;

    /// What the lines of the range are ordered by.
    range_order: RangeOrder(RangeOrder) = RangeOrder::Kept,
    "order" = ORDERS, "the order of the lines";

    /// Whether the timeline's height fits the requested memory, not the reserved memory.
    fits_requested: FitsRequested(bool) = false,
    "fit" = [(true, "requested")], "the height";

    /// Whether the segment map has the colours of the timeline, not those of states.
    segments_by_class: SegmentsByClass(bool) = false,
    "segcolor" = [(true, "class")], "the colours of the segments", remembered;

    /// Whether the flame graph grows from the innermost frame.
    flame_bottom_up: FlameBottomUp(bool) = false,
    "flame" = [(true, "up")], "the direction of the flame graph", remembered;

    /// Whether the first level of the flame graph are categories.
    flame_by_category: FlameByCategory(bool) = false,
    "group" = [(true, "category")], "the categories of the flame graph", remembered;

    /// Whether runs of library frames are folded in the flame graph and in stacks.
    folds: Folds(bool) = true,
    "internal" = [(false, "1")], "the folding of library frames", remembered;

    /// Whether the flame graph is shown as a table.
    flame_as_table: FlameAsTable(bool) = false,
    "table" = [(true, "1")], "the flame table";

    /// Whether the heatmap shows request sizes, not addresses.
    heatmap_sizes: HeatmapSizes(bool) = false,
    "heat" = [(true, "sizes")], "the mode of the heatmap", remembered;

    /// Whether the flame graph of a growth shows what shrank too.
    flame_differs: FlameDiffers(bool) = false,
    "differs" = [(true, "1")], "the differences of the flame graph";

    /// The order of the segments.
    segment_order: SegmentOrder(SegmentOrder) = SegmentOrder::Address,
    "segsort" = SEGMENT_ORDERS, "the order of the segments";

    /// What the segments are grouped by.
    segment_group: SegmentGroup(SegmentGroup) = SegmentGroup::None,
    "seggroup" = SEGMENT_GROUPS, "the groups of the segments";

    /// The order of the table of allocations.
    allocation_order: AllocationOrder(AllocationOrder) = AllocationOrder::Bytes,
    "alloc" = ALLOCATION_ORDERS, "the order of the allocations";

    /// Whether that order is turned around.
    allocations_reversed: AllocationsReversed(bool) = false,
    "allocrev" = [(true, "1")], "the order of the allocations";

    /// Whether allocations of one size from one call site share a row.
    folds_allocations: FoldsAllocations(bool) = true,
    "each" = [(false, "1")], "the rows of the allocations", remembered;

    /// The moment at which two runs are compared.
    compared_moment: ComparedMoment(ComparedMoment) = ComparedMoment::Common,
    "at" = COMPARED_MOMENTS, "the moment of the comparison";

    /// What the compared runs are drawn along.
    compared_axis: ComparedAxis(ComparedAxis) = ComparedAxis::Steps,
    "along" = COMPARED_AXES, "the axis of the comparison";

    /// The order of the compared lines.
    compared_order: ComparedOrder(ComparedOrder) = ComparedOrder::Growth,
    "diffsort" = COMPARED_ORDERS, "the order of the compared lines";

    /// The view that shows the compared runs side by side.
    compared_view: ComparedView(ComparedView) = ComparedView::None,
    "beside" = COMPARED_VIEWS, "the view of both runs";

    /// Whether lines that did not change are listed too.
    lists_unchanged: ListsUnchanged(bool) = false,
    "same" = [(true, "1")], "the unchanged lines";

    --- without names ---

    /// The curves below the timeline.
    curves: Vec<Measure>;

    /// The actions that the event list shows; empty for all.
    event_actions: Vec<String>;

    /// The order of the event list.
    event_order: EventOrder;

    /// The columns that the event list does not show.
    hidden_columns: Vec<EventColumn>;

    /// The transforms of the flame graph's stacks, applied in this order.
    flame_transforms: Vec<Transform>;

    /// The frame whose callers and callees the flame graph shows, and whether only its line counts.
    flame_sandwich: Option<(u32, bool)>;
}

/// What the views are magnified to. Each change is a step of the history, unlike one of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Zooms {
    /// The visible part of the timeline's height in bytes; `None` fits the window's contents.
    pub bytes: Option<Window>,
    /// The magnification of the segment map; 1 fits the view.
    pub segments: f32,
    /// The boxes that the flame graph is zoomed into, from the root.
    pub flame: Vec<u32>,
    /// The part of the memory that the heatmap shows.
    pub heatmap_part: HeatmapPart,
    /// The visible part of the heatmap's addresses, as offsets in bytes; `None` for all of them.
    pub heatmap_offsets: Option<Window>,
}

impl Default for Zooms {
    fn default() -> Self {
        Self {
            bytes: None,
            segments: 1.0,
            flame: Vec::new(),
            heatmap_part: HeatmapPart::default(),
            heatmap_offsets: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_written_and_read_again() {
        assert_eq!(Settings::default().parts(), []);
        let mut set = Settings::default();
        for setting in [
            Setting::ColorBy(ColorBy::Size),
            Setting::Folds(false),
            Setting::HeatmapSizes(true),
            Setting::SegmentOrder(SegmentOrder::Free),
        ] {
            set.set(setting);
        }
        let parts = set.parts();
        assert_eq!(parts, [("color", "size"), ("internal", "1"), ("heat", "sizes"), ("segsort", "free")]);
        let mut read = Settings::default();
        parts.iter().for_each(|(key, value)| read.take(key, value).unwrap());
        assert_eq!(read, set);
        for (key, value) in [("color", "mud"), ("internal", "0"), ("heat", ""), ("fog", "1")] {
            assert_eq!(read.take(key, value), None, "{key}={value}");
        }
        assert_eq!(read, set, "what is invalid changes nothing");
    }

    #[test]
    fn only_some_settings_are_remembered() {
        let mut set = Settings::default();
        set.set(Setting::ColorBy(ColorBy::Pool));
        set.set(Setting::Listing(Listing::AtPeak));
        let mut next = Settings::default();
        next.remember(&set);
        assert_eq!(next, Settings { color_by: ColorBy::Pool, ..Settings::default() });
    }
}
