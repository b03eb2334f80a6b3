//! The views, one file or folder each. A view reads the model and sends actions; it never changes the model.

pub mod allocations;
pub mod category_rules;
mod chart;
pub mod context_menu;
pub mod controls;
mod description;
pub mod details;
pub mod events;
mod failed;
pub mod findings;
pub mod flame;
pub mod folding;
pub mod heatmap;
mod key;
pub mod legend;
mod losses;
pub mod menu_target;
mod moment;
pub mod overview;
mod pin_flags;
mod range_band;
mod range_button;
pub mod search;
pub mod segments;
pub mod status;
pub mod sweep;
pub mod text_twin;
pub mod timeline;
pub mod verdict;
pub mod whatif;

use query::link::{Side, Tab};
use yew::prelude::*;

use self::description::Description;
use crate::browser::window;

/// A view that fills the page.
pub struct TabView {
    /// The tab.
    pub tab: Tab,
    /// The title in the tab bar.
    pub title: &'static str,
    /// Renders the view.
    pub render: fn() -> Html,
    /// What a screen reader hears of it.
    description: Description,
}

/// All views, in the order of the tab bar.
pub const TABS: [TabView; Tab::ALL.len()] = [
    TabView {
        tab: Tab::Timeline,
        title: "Timeline",
        render: || html! { <timeline::Timeline /> },
        description: timeline::DESCRIPTION,
    },
    TabView {
        tab: Tab::Segments,
        title: "Segments",
        render: || html! { <segments::Segments /> },
        description: segments::DESCRIPTION,
    },
    TabView { tab: Tab::Flame, title: "Flame", render: || html! { <flame::Flame /> }, description: flame::DESCRIPTION },
    TabView {
        tab: Tab::Events,
        title: "Events",
        render: || html! { <events::Events /> },
        description: events::DESCRIPTION,
    },
    TabView {
        tab: Tab::Findings,
        title: "Findings",
        render: || html! { <findings::Findings /> },
        description: findings::DESCRIPTION,
    },
    TabView {
        tab: Tab::Heatmap,
        title: "Heatmap",
        render: || html! { <heatmap::HeatmapView /> },
        description: heatmap::DESCRIPTION,
    },
    TabView {
        tab: Tab::WhatIf,
        title: "What-if",
        render: || html! { <whatif::WhatIfView /> },
        description: Description::NONE,
    },
    TabView {
        tab: Tab::Allocations,
        title: "Allocations",
        render: || html! { <allocations::Allocations /> },
        description: allocations::DESCRIPTION,
    },
];

/// Returns the id of a view's panel.
pub fn panel_id(tab: Tab) -> String {
    format!("view-{}", tab.name())
}

/// On a page narrower than this many pixels, a second view opens below the first.
const NARROW: f64 = 1_000.0;

/// Returns the side on which a second view opens on this page.
pub fn first_side() -> Side {
    let width = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(NARROW);
    if width < NARROW { Side::Below } else { Side::Right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tab_has_a_view() {
        for tab in Tab::ALL {
            assert_eq!(TABS.iter().filter(|view| view.tab == tab).count(), 1, "{}", tab.name());
        }
    }
}
