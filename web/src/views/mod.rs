//! The views, one file or folder each. A view reads the model and sends actions; it never changes the model.

pub mod allocations;
pub mod category_rules;
mod chart;
pub mod compare;
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

/// A tab with its title.
pub struct TabTitle {
    /// The tab.
    pub tab: Tab,
    /// The title.
    pub title: &'static str,
}

/// All tabs, in the order of the tab bar.
pub const TABS: [TabTitle; Tab::ALL.len()] = [
    TabTitle { tab: Tab::Timeline, title: "Timeline" },
    TabTitle { tab: Tab::Segments, title: "Segments" },
    TabTitle { tab: Tab::Flame, title: "Flame" },
    TabTitle { tab: Tab::Events, title: "Events" },
    TabTitle { tab: Tab::Findings, title: "Findings" },
    TabTitle { tab: Tab::Heatmap, title: "Heatmap" },
    TabTitle { tab: Tab::WhatIf, title: "What-if" },
    TabTitle { tab: Tab::Allocations, title: "Allocations" },
    TabTitle { tab: Tab::Compare, title: "Compare" },
];

/// A view that fills the page.
pub struct TabView {
    /// Renders the view.
    pub render: fn() -> Html,
    /// What a screen reader hears of it.
    description: Description,
}

/// Returns the view of a tab. Only the deferred part of the page calls it, so that what it names is no part of the first module.
pub const fn view(tab: Tab) -> TabView {
    match tab {
        Tab::Timeline => TabView { render: || html! { <timeline::Timeline /> }, description: timeline::DESCRIPTION },
        Tab::Segments => TabView { render: || html! { <segments::Segments /> }, description: segments::DESCRIPTION },
        Tab::Flame => TabView { render: || html! { <flame::Flame /> }, description: flame::DESCRIPTION },
        Tab::Events => TabView { render: || html! { <events::Events /> }, description: events::DESCRIPTION },
        Tab::Findings => TabView { render: || html! { <findings::Findings /> }, description: findings::DESCRIPTION },
        Tab::Heatmap => TabView { render: || html! { <heatmap::HeatmapView /> }, description: heatmap::DESCRIPTION },
        Tab::WhatIf => TabView { render: || html! { <whatif::WhatIfView /> }, description: Description::NONE },
        Tab::Allocations => {
            TabView { render: || html! { <allocations::Allocations /> }, description: allocations::DESCRIPTION }
        }
        Tab::Compare => TabView { render: || html! { <compare::Compare /> }, description: compare::DESCRIPTION },
    }
}

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
    fn every_tab_has_a_title() {
        for tab in Tab::ALL {
            assert_eq!(TABS.iter().filter(|view| view.tab == tab).count(), 1, "{}", tab.name());
        }
    }
}
