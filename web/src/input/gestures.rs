//! The list of mouse and touch gestures of each view, which the help dialog shows beside the keys.

use crate::model::{Model, Tab};

/// A gesture.
pub struct Gesture {
    /// The ways to make it, such as `Pinch` and `Ctrl+wheel`.
    pub how: &'static [&'static str],
    /// What it does.
    pub title: &'static str,
}

/// The gestures of one part of the page.
pub struct Gestures {
    /// The heading.
    pub place: &'static str,
    /// The tabs that have these gestures; empty if every tab has them.
    pub tabs: &'static [Tab],
    /// The gestures.
    pub rows: &'static [Gesture],
}

const fn row(how: &'static [&'static str], title: &'static str) -> Gesture {
    Gesture { how, title }
}

/// All gestures. All pictures with an x axis have the same ones.
pub static GESTURES: &[Gestures] = &[
    Gestures {
        place: "Mouse and touch: overview and pictures over time",
        tabs: &[Tab::Timeline, Tab::Heatmap, Tab::WhatIf],
        rows: &[
            row(&["Drag"], "Select a range; Enter or Zoom beside it shows it over the whole width"),
            row(&["Shift+drag", "Middle drag", "One finger"], "Move left and right"),
            row(&["Wheel", "Pinch", "Ctrl+wheel"], "Zoom at the pointer"),
            row(&["Shift+wheel", "Sideways wheel"], "Move left and right"),
            row(&["Alt+wheel"], "Zoom the height"),
            row(&["Ctrl+drag", "Alt+drag"], "Zoom into a rectangle"),
            row(&["Double-click"], "Zoom to what is under the pointer, or show everything"),
            row(&["Drag in the margin"], "Move the cursor, above or below the picture"),
        ],
    },
    Gestures {
        place: "Mouse and touch: timeline",
        tabs: &[Tab::Timeline],
        rows: &[
            row(&["Click a step"], "Select it as the range"),
            row(&["Shift+click a step"], "Compare it with the selected one"),
            row(&["Click a flag"], "Go to the pin, or to where memory ran out"),
        ],
    },
    Gestures {
        place: "Mouse and touch: overview",
        tabs: &[],
        rows: &[
            row(&["Drag an edge"], "Move one end of the visible part"),
            row(&["Click"], "Move the cursor and the window there"),
            row(&["Two fingers"], "Move both ends of the visible part"),
        ],
    },
    Gestures {
        place: "Mouse and touch: segments",
        tabs: &[Tab::Segments],
        rows: &[
            row(&["Click"], "Select a block or a segment; then ← → go to the block beside it, ↑ ↓ to another segment"),
            row(&["Double-click"], "Magnify, or show everything again"),
            row(&["Ctrl+wheel"], "Magnify at the pointer"),
        ],
    },
    Gestures {
        place: "Mouse and touch: heatmap",
        tabs: &[Tab::Heatmap],
        rows: &[
            row(&["Click"], "Select the segment at that moment"),
            row(&["Double-click"], "Show only this segment, or all again"),
        ],
    },
    Gestures {
        place: "Mouse and touch: flame graph",
        tabs: &[Tab::Flame],
        rows: &[row(&["Click"], "Zoom into a box"), row(&["Wheel"], "Scroll")],
    },
    Gestures {
        place: "Mouse and touch: everywhere",
        tabs: &[],
        rows: &[
            row(&["Right-click", "Long press"], "Open the menu of a block, line, event, box, segment or moment"),
            row(&["Copy a number"], "Copy the exact byte count, if only the number is selected"),
        ],
    },
];

/// Returns the gestures of the current tab; none without a trace.
pub fn live_gestures(model: &Model) -> impl Iterator<Item = &'static Gestures> {
    let tab = model.shared_summary().map(|_| model.view.tab);
    GESTURES.iter().filter(move |of| tab.is_some_and(|tab| of.tabs.is_empty() || of.tabs.contains(&tab)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::model::Action;
    use crate::model::testing::{added, after, read};

    #[test]
    fn each_tab_lists_its_own_gestures() {
        assert_eq!(live_gestures(&after([])).count(), 0, "nothing to point at");
        let mut seen = HashSet::new();
        for tab in Tab::ALL {
            let model = after([added(0, "a"), read(0, &[1000]), Action::SetTab(tab)]);
            let places: Vec<_> = live_gestures(&model).map(|of| of.place).collect();
            assert_eq!(
                places.iter().any(|place| place.contains("over time")),
                matches!(tab, Tab::Timeline | Tab::Heatmap | Tab::WhatIf)
            );
            seen.extend(places);
        }
        assert_eq!(seen.len(), GESTURES.len(), "gestures that are never listed");
    }

    #[test]
    fn no_place_has_a_gesture_twice() {
        for of in GESTURES {
            let ways: Vec<_> = of.rows.iter().flat_map(|row| row.how).collect();
            assert_eq!(ways.iter().collect::<HashSet<_>>().len(), ways.len(), "{}", of.place);
        }
    }
}
