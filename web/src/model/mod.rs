//! The page's state: one [`Model`] and one [`update()`] that applies [`Action`]s to it.
//!
//! The model is pure data: it imports the messages of the engine and nothing else of the page, and never touches the
//! browser. Components reach it through `hooks`, and nothing but [`update()`] changes it.

mod action;
mod away;
mod base;
mod history;
mod live;
mod menu;
mod offer;
mod parts;
mod place;
mod preferences;
mod rebase;
mod recent;
mod shared_link;
mod state;
#[cfg(test)]
pub(crate) mod testing;
mod unseen;
mod update;
mod view;
mod waiting;
mod whatif;

pub use action::Action;
pub use away::{to_bring_back, to_put_away};
pub use base::is_trace;
pub use history::{History, Way, steps_to_undo, way};
pub use live::{Live, count};
pub use menu::{OpenMenu, Subject};
pub use offer::{Offer, OfferedBy};
pub use parts::Parts;
pub use place::Place;
pub use preferences::Preferences;
pub use rebase::rebased;
pub use recent::{Again, Recent, recent_closed, recent_of};
pub use shared_link::{SHARED_PREFIX, SharedLink, Trouble};
pub use state::{DataState, Dialog, FileEntry, FileKey, Model, PaneLook, Phase, Shared, ThemeChoice};
pub use unseen::is_noticed;
pub use update::update;
pub use view::{Listing, Pin, Selection, Setting, Side, Split, Tab, View, extent};
pub use waiting::{being_read, next_to_read};
pub use whatif::{
    Curves, CurvesAsked, Goal, Group, MOST_RUNS, RECORDED, Run, RunConditions, RunCurve, Tune, Tuned, WhatIf,
    WhatIfStep,
};
