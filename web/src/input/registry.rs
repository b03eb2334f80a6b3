//! The list of all commands.

use query::link::Tab;
use query::{Axis, ColorBy, SegmentGroup, SegmentLayout, SegmentOrder};
use yew::Callback;

use super::command::{Chord, Command, Group};
use super::navigate as go;
use crate::browser;
use crate::hooks::{ModelHandle, find_remedy, to_hit, zoom_to_range};
use crate::model::{Action, Dialog, Listing, Live, Model, Selection, Setting, Side, Subject, steps_to_undo};
use crate::views::details::select_here;
use crate::views::events::{copy_event, to_partner};
use crate::views::flame::transforms;
use crate::views::heatmap::{move_rows, zoom_rows};
use crate::views::menu_target::open_menu_here;
use crate::views::search::SEARCH_INPUT_ID;
use crate::{address, source};

/// The share of the window by which a key moves it, without and with Shift.
const PAN: (f64, f64) = (0.1, 0.5);
/// The factor by which a key zooms, without and with Shift.
const ZOOM: (f64, f64) = (0.8, 0.4);

/// The factor by which a key zooms into the heatmap's addresses.
const ROW_ZOOM: f64 = 0.5;

fn always(_: &Model) -> bool {
    true
}

/// Whether the page uses the API of its server.
fn has_server(model: &Model) -> bool {
    model.place.has_server()
}

fn is_ready(model: &Model) -> bool {
    model.shared_summary().is_some()
}

fn has_events(model: &Model) -> bool {
    model.device().is_some_and(|device| device.events > 0)
}

/// Returns whether letter keys are free. While a box of the flame graph is chosen, they transform the graph.
fn has_free_letters(model: &Model) -> bool {
    has_events(model) && !transforms::has_box(model)
}

fn has_range(model: &Model) -> bool {
    is_ready(model) && model.view.extended_range().is_some()
}

/// Returns whether an allocation or a line is selected.
fn has_line(model: &Model) -> bool {
    is_ready(model)
        && matches!(model.view.selection, Selection::Allocation(_) | Selection::Line(_) | Selection::Site(_))
}

fn has_pins(model: &Model) -> bool {
    is_ready(model) && !model.view.pins.is_empty()
}

/// Returns whether there is a selection, or an event at the cursor, that a menu can be opened for.
fn has_subject(model: &Model) -> bool {
    is_ready(model) && (model.view.cursor > 0 || Subject::of(model.view.selection, 0).is_some())
}

/// Whether Enter is free for what the event at the cursor is about.
fn can_select_here(model: &Model) -> bool {
    let is_over_time = matches!(model.view.tab, Tab::Timeline | Tab::Segments | Tab::Events | Tab::Heatmap);
    has_events(model) && is_over_time && model.view.cursor > 0 && !has_range(model)
}

/// Arrows and letters move the window only where no list uses them.
fn can_move(model: &Model) -> bool {
    has_events(model) && matches!(model.view.tab, Tab::Timeline | Tab::Segments | Tab::Heatmap | Tab::WhatIf)
}

fn is_searching(model: &Model) -> bool {
    is_ready(model) && model.view.highlight.is_some()
}

/// Whether the shown session may still grow, or is paused.
fn is_live(model: &Model) -> bool {
    is_ready(model) && model.live().is_some_and(|live| live.is_paused || live.is_open())
}

fn can_jump(model: &Model) -> bool {
    is_ready(model) && model.live().is_some_and(Live::can_jump)
}

fn is_split(model: &Model) -> bool {
    is_ready(model) && model.view.split.is_some()
}

/// Returns whether the views are not yet arranged side by side (`is_beside`) or one above the other.
fn can_split(model: &Model, is_beside: bool) -> bool {
    is_ready(model) && model.view.split.is_none_or(|split| split.side.is_beside() != is_beside)
}

fn in_tab(model: &Model, tab: Tab) -> bool {
    is_ready(model) && model.view.tab == tab
}

/// Whether the heatmap shows addresses.
fn has_rows(model: &Model) -> bool {
    has_events(model) && in_tab(model, Tab::Heatmap) && !model.view.settings.heatmap_sizes
}

fn pan(model: &ModelHandle, sign: f64, is_faster: bool) {
    model.dispatch(Action::Pan(sign * if is_faster { PAN.1 } else { PAN.0 }));
}

fn zoom(model: &ModelHandle, is_in: bool, is_faster: bool) {
    let factor = if is_faster { ZOOM.1 } else { ZOOM.0 };
    let factor = if is_in { factor } else { 1.0 / factor };
    model.dispatch(Action::Zoom { factor, at: model.pointer() });
}

fn toggle_axis(model: &ModelHandle) {
    let axis = match model.now().view.axis {
        Axis::Time => Axis::Event,
        Axis::Event => Axis::Time,
    };
    model.dispatch(Action::SetAxis(axis));
}

/// Creates an entry of the table.
const fn command(
    group: Group,
    id: &'static str,
    title: &'static str,
    chords: &'static [Chord],
    is_live: fn(&Model) -> bool,
    run: fn(&ModelHandle, bool),
) -> Command {
    Command { id, title, group, chords, is_live, run }
}

use Group::{Cursor, Page, Search, View, Window};

/// All commands. No two that can be available together share a key; a test checks it.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    command(Window, "pan-left", "Move left", &[Chord::faster("KeyA"), Chord::code("ArrowLeft")], can_move, |m, fast| pan(m, -1.0, fast)),
    command(Window, "pan-right", "Move right", &[Chord::faster("KeyD"), Chord::code("ArrowRight")], can_move, |m, fast| pan(m, 1.0, fast)),
    command(Window, "zoom-in", "Zoom in", &[Chord::faster("KeyW"), Chord::faster("ArrowUp")], can_move, |m, fast| zoom(m, true, fast)),
    command(Window, "zoom-out", "Zoom out", &[Chord::faster("KeyS"), Chord::faster("ArrowDown")], can_move, |m, fast| zoom(m, false, fast)),
    command(Window, "fit-selection", "Fit the selection or the whole trace", &[Chord::code("KeyF")], has_free_letters, |m, _| go::fit(m)),
    command(Window, "fit-all", "Fit the whole trace", &[Chord::shift("KeyF")], has_free_letters, |m, _| m.dispatch(Action::FitAll)),

    command(Cursor, "next-event", "Next event", &[Chord::char(".")], has_events, |m, _| go::step(m, true)),
    command(Cursor, "previous-event", "Previous event", &[Chord::char(",")], has_events, |m, _| go::step(m, false)),
    command(Cursor, "next-of-line", "Next allocation of the same line", &[Chord::char("]")], has_line, |m, _| go::step_line(m, true)),
    command(Cursor, "previous-of-line", "Previous allocation of the same line", &[Chord::char("[")], has_line, |m, _| go::step_line(m, false)),
    command(Cursor, "partner", "Go to the matching free or alloc", &[Chord::code("KeyE")], has_events, |m, _| to_partner(m)),
    command(Cursor, "copy-event", "Copy the event at the cursor", &[], has_events, |m, _| copy_event(m)),
    command(Cursor, "mark-range", "Mark the selection, or up to the cursor, as the range", &[Chord::code("KeyM")], has_free_letters, |m, _| go::mark_range(m)),
    command(Cursor, "extend-left", "Extend the range to the left", &[Chord::shift("ArrowLeft")], can_move, |m, _| go::extend_range(m, false)),
    command(Cursor, "extend-right", "Extend the range to the right", &[Chord::shift("ArrowRight")], can_move, |m, _| go::extend_range(m, true)),
    command(Cursor, "extend-back", "Extend the range back one event", &[Chord::char("<")], has_events, |m, _| go::extend_by(m, -1)),
    command(Cursor, "extend-on", "Extend the range forward one event", &[Chord::char(">")], has_events, |m, _| go::extend_by(m, 1)),
    command(Cursor, "zoom-range", "Zoom to the range", &[Chord::code("Enter")], has_range, |m, _| zoom_to_range(m)),
    command(Cursor, "select-here", "Select this event's allocation or segment", &[Chord::code("Enter")], can_select_here, |m, _| select_here(m)),
    command(Cursor, "clear-range", "Clear the range", &[], |m| is_ready(m) && m.view.range.is_some(), |m, _| m.dispatch(Action::SetRange(None))),
    command(Cursor, "pin", "Pin the selected allocation or the cursor, or unpin it", &[Chord::shift("KeyM")], has_events, |m, _| go::toggle_pin(m)),
    command(Cursor, "next-pin", "Next pin", &[Chord::char("}")], has_pins, |m, _| go::to_pin(m, true)),
    command(Cursor, "previous-pin", "Previous pin", &[Chord::char("{")], has_pins, |m, _| go::to_pin(m, false)),
    command(Cursor, "compare-steps", "Compare two steps", &[Chord::code("KeyC")], has_free_letters, |m, _| m.dispatch(Action::CompareSteps(None))),
    command(Cursor, "peak", "Go to the peak", &[Chord::code("KeyP")], has_events, |m, _| go::to_peak(m)),
    command(Cursor, "next-oom", "Go to the next out-of-memory event", &[Chord::code("KeyO")], |m| m.device().is_some_and(|d| !d.ooms.is_empty()), |m, _| go::to_next_oom(m)),
    command(Cursor, "start", "Go to the start", &[Chord::code("Home")], has_events, |m, _| m.dispatch(Action::SetCursor(0))),
    command(Cursor, "end", "Go to the end", &[Chord::code("End")], |m| has_events(m) && !is_live(m), |m, _| m.dispatch(Action::SetCursor(u32::MAX))),
    command(Cursor, "now", "Jump to now and follow", &[Chord::code("End")], can_jump, |m, _| m.dispatch(Action::JumpToNow)),
    command(Cursor, "pause", "Pause or resume", &[Chord::code("Space")], is_live, |m, _| m.dispatch(Action::TogglePause)),

    command(Search, "search", "Search", &[Chord::char("/")], is_ready, |_, _| browser::focus(SEARCH_INPUT_ID)),
    command(Search, "next-hit", "Next match", &[Chord::code("KeyN")], is_searching, |m, _| to_hit(m, true, Callback::noop())),
    command(Search, "previous-hit", "Previous match", &[Chord::shift("KeyN")], is_searching, |m, _| to_hit(m, false, Callback::noop())),
    command(Search, "filter-by-search", "Show only matches", &[], is_searching, |m, _| go::filter_by_search(m)),
    command(Search, "clear-filters", "Clear all filters", &[], |m| is_ready(m) && !m.view.filter.is_empty(), |m, _| m.dispatch(Action::ClearFilters)),

    command(View, "tab-timeline", "Show the timeline", &[Chord::code("Digit1")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Timeline))),
    command(View, "tab-segments", "Show the segments", &[Chord::code("Digit2")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Segments))),
    command(View, "tab-flame", "Show the flame graph", &[Chord::code("Digit3")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Flame))),
    command(View, "tab-events", "Show the events", &[Chord::code("Digit4")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Events))),
    command(View, "tab-findings", "Show the findings", &[Chord::code("Digit5")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Findings))),
    command(View, "tab-heatmap", "Show the heatmap", &[Chord::code("Digit6")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Heatmap))),
    command(View, "tab-whatif", "Show what-if: other settings, other cards", &[Chord::code("Digit7")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::WhatIf))),
    command(View, "tab-allocations", "Show the table of allocations", &[Chord::code("Digit8")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Allocations))),
    command(View, "tab-compare", "Compare with another run", &[Chord::code("Digit9")], is_ready, |m, _| m.dispatch(Action::SetTab(Tab::Compare))),
    command(View, "compare-swap", "Swap the compared runs", &[Chord::code("KeyB")], |m| in_tab(m, Tab::Compare) && m.base().is_some(), |m, _| m.dispatch(Action::SwapBase)),
    command(View, "split", "Show two views, or one again", &[Chord::code("Backslash")], is_ready, |m, _| go::toggle_split(m)),
    command(View, "split-beside", "Show two views side by side", &[], |m| can_split(m, true), |m, _| go::split(m, Side::Right)),
    command(View, "split-over", "Show two views one above the other", &[], |m| can_split(m, false), |m, _| go::split(m, Side::Below)),
    command(View, "split-other", "Go to the other view", &[Chord::code("F6")], is_split, |m, _| go::to_other_view(m)),
    command(View, "find-settings", "Find better allocator settings", &[], has_events, |m, _| find_remedy(m)),
    command(View, "axis", "Switch the x axis: time or events", &[Chord::code("KeyX")], |m| m.device().is_some_and(|d| d.events > 0 && d.has_times), |m, _| toggle_axis(m)),
    command(View, "curves", "Show or hide the curves of fragmentation", &[], |m| in_tab(m, Tab::Timeline), |m, _| m.dispatch(Action::ToggleCurves)),
    command(View, "listing", "Cycle list: cursor, peak, growth", &[Chord::code("KeyG")], has_events, |m, _| go::next_listing(m)),
    command(View, "details", "Show or hide the details", &[Chord::code("KeyI")], is_ready, |m, _| m.dispatch(Action::SetDetailsOpen(!m.now().is_details_open))),
    command(View, "color-site", "Colour by call site", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Site)))),
    command(View, "color-size", "Colour by size", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Size)))),
    command(View, "color-stream", "Colour by stream", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Stream)))),
    command(View, "color-pool", "Colour by pool", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Pool)))),
    command(View, "color-lifetime", "Colour by lifetime", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Lifetime)))),
    command(View, "color-category", "Colour by category", &[], is_ready, |m, _| m.dispatch(Action::Set(Setting::ColorBy(ColorBy::Category)))),
    command(View, "segment-scale", "Show segments to scale", &[], |m| in_tab(m, Tab::Segments) && m.view.settings.segment_layout != SegmentLayout::ToScale, |m, _| m.dispatch(Action::Set(Setting::SegmentLayout(SegmentLayout::ToScale)))),
    command(View, "segment-packed", "Show segments packed", &[], |m| in_tab(m, Tab::Segments) && m.view.settings.segment_layout != SegmentLayout::Packed, |m, _| m.dispatch(Action::Set(Setting::SegmentLayout(SegmentLayout::Packed)))),
    command(View, "flame-direction", "Flip the flame graph", &[Chord::code("KeyB")], |m| in_tab(m, Tab::Flame), |m, _| m.dispatch(Action::Set(Setting::FlameBottomUp(!m.now().view.settings.flame_bottom_up)))),
    command(View, "heatmap-rows", "Switch the heatmap: addresses or request sizes", &[Chord::code("KeyB")], |m| in_tab(m, Tab::Heatmap), |m, _| m.dispatch(Action::Set(Setting::HeatmapSizes(!m.now().view.settings.heatmap_sizes)))),
    command(View, "group-equal", "Group equal allocations, or list each", &[Chord::code("KeyB")], |m| in_tab(m, Tab::Allocations), |m, _| m.dispatch(Action::Set(Setting::FoldsAllocations(!m.now().view.settings.folds_allocations)))),
    command(View, "rows-in", "Zoom in on addresses", &[Chord::char("+")], has_rows, |m, _| zoom_rows(m, ROW_ZOOM)),
    command(View, "rows-out", "Zoom out on addresses", &[Chord::char("-")], has_rows, |m, _| zoom_rows(m, 1.0 / ROW_ZOOM)),
    command(View, "rows-up", "Move to lower addresses", &[Chord::code("PageUp")], |m| has_rows(m) && m.view.zooms.heatmap_offsets.is_some(), |m, _| move_rows(m, -PAN.1)),
    command(View, "rows-down", "Move to higher addresses", &[Chord::code("PageDown")], |m| has_rows(m) && m.view.zooms.heatmap_offsets.is_some(), |m, _| move_rows(m, PAN.1)),
    command(View, "heatmap-segment", "Show the segment with the largest unusable gap at the cursor", &[Chord::code("KeyV")], |m| has_events(m) && in_tab(m, Tab::Heatmap), |m, _| go::to_worst_gap(m)),
    command(View, "fold-frames", "Fold or unfold library frames", &[Chord::code("KeyH")], is_ready, |m, _| m.dispatch(Action::Set(Setting::Folds(!m.now().view.settings.folds)))),
    command(View, "folding-rules", "Edit folding rules", &[], is_ready, |m, _| m.dispatch(Action::OpenDialog(Dialog::Folding))),
    command(View, "category-rules", "Edit category rules", &[], is_ready, |m, _| m.dispatch(Action::OpenDialog(Dialog::Categories))),
    command(View, "flame-focus-function", "Focus the flame graph on the function", &[Chord::code("KeyF")], |m| transforms::can_apply(m, 0), |m, _| transforms::apply(m, 0)),
    command(View, "flame-focus-subtree", "Focus the flame graph on the subtree", &[Chord::shift("KeyF")], |m| transforms::can_apply(m, 1), |m, _| transforms::apply(m, 1)),
    command(View, "flame-merge", "Merge the function into its caller", &[Chord::code("KeyM")], |m| transforms::can_apply(m, 2), |m, _| transforms::apply(m, 2)),
    command(View, "flame-drop", "Drop stacks with the function", &[Chord::code("KeyD")], |m| transforms::can_apply(m, 3), |m, _| transforms::apply(m, 3)),
    command(View, "flame-collapse-function", "Collapse the function", &[Chord::code("KeyC")], |m| transforms::can_apply(m, 4), |m, _| transforms::apply(m, 4)),
    command(View, "flame-collapse-direct", "Collapse direct recursion", &[Chord::shift("KeyR")], |m| transforms::can_apply(m, 5), |m, _| transforms::apply(m, 5)),
    command(View, "flame-collapse-recursion", "Collapse all recursion", &[Chord::code("KeyR")], |m| transforms::can_apply(m, 6), |m, _| transforms::apply(m, 6)),
    command(View, "flame-collapse-library", "Collapse the library", &[Chord::shift("KeyC")], |m| transforms::can_apply(m, 7), |m, _| transforms::apply(m, 7)),
    command(View, "flame-sandwich", "Show callers and callees of the function", &[Chord::code("KeyS")], transforms::is_function, |m, _| transforms::sandwich(m, false)),
    command(View, "flame-sandwich-line", "Show callers and callees of the line", &[Chord::shift("KeyS")], transforms::is_function, |m, _| transforms::sandwich(m, true)),
    command(View, "flame-differs", "Show or hide what shrank in the flame graph", &[], |m| in_tab(m, Tab::Flame) && m.view.settings.listing == Listing::Growth, |m, _| m.dispatch(Action::Set(Setting::FlameDiffers(!m.now().view.settings.flame_differs)))),
    command(View, "segment-by-address", "Sort segments by address", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentOrder(SegmentOrder::Address)))),
    command(View, "segment-by-size", "Sort segments by size", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentOrder(SegmentOrder::Size)))),
    command(View, "segment-by-stream", "Sort segments by stream", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentOrder(SegmentOrder::Stream)))),
    command(View, "segment-by-free", "Sort segments by free share", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentOrder(SegmentOrder::Free)))),
    command(View, "segment-ungrouped", "Don't group segments", &[], |m| in_tab(m, Tab::Segments) && m.view.settings.segment_group != SegmentGroup::None, |m, _| m.dispatch(Action::Set(Setting::SegmentGroup(SegmentGroup::None)))),
    command(View, "segment-by-pool", "Group segments by pool", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentGroup(SegmentGroup::Pool)))),
    command(View, "segment-by-streams", "Group segments by stream", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentGroup(SegmentGroup::Stream)))),
    command(View, "segment-by-both", "Group segments by pool and stream", &[], |m| in_tab(m, Tab::Segments), |m, _| m.dispatch(Action::Set(Setting::SegmentGroup(SegmentGroup::PoolAndStream)))),
    command(View, "flame-by-category", "Group the flame graph by category", &[], |m| in_tab(m, Tab::Flame), |m, _| m.dispatch(Action::Set(Setting::FlameByCategory(!m.now().view.settings.flame_by_category)))),
    command(View, "menu", "Open the menu of the selection or the event at the cursor", &[Chord::shift("F10"), Chord::code("ContextMenu")], has_subject, |m, _| open_menu_here(m)),
    command(View, "select-nothing", "Clear selection", &[], |m| is_ready(m) && m.view.selection != Selection::None, |m, _| m.dispatch(Action::Select(Selection::None))),

    command(Page, "undo", "Undo (step back)", &[Chord::letter("z", false), Chord::code("Backspace")], |m| steps_to_undo(m, false) != 0, |m, _| address::step(m, false)),
    command(Page, "redo", "Redo (step forward)", &[Chord::letter("z", true), Chord::letter("y", false)], |m| steps_to_undo(m, false) != 0 || steps_to_undo(m, true) != 0, |m, _| address::step(m, true)),
    command(Page, "open", "Open file…", &[], always, |m, _| source::pick(m)),
    command(Page, "explain", "Explain the text of an error", &[], has_server, |m, _| m.dispatch(Action::OpenDialog(Dialog::Explain))),
    command(Page, "sample", "Open sample", &[], has_server, |m, _| source::open_sample(m)),
    command(Page, "history", "Load full history", &[], |m| m.live().is_some_and(|l| l.sees_part() && l.is_open()), |m, _| source::ask_history(m)),
    command(Page, "demo", "Watch live demo", &[], |m| has_server(m) && m.current.is_none(), |m, _| source::watch_demo(m)),
    command(Page, "jobs", "Watch another job", &[Chord::code("KeyJ")], |m| m.live().is_some(), |m, _| m.dispatch(Action::OpenDialog(Dialog::Jobs))),
    command(Page, "sessions", "Go to the start page: jobs and recent files", &[], |m| has_server(m) && m.current.is_some(), |m, _| m.dispatch(Action::ShowStart)),
    command(Page, "close", "Close the file", &[], |m| m.current.is_some() && m.live().is_none(), |m, _| source::close_current(m)),
    command(Page, "close-all", "Close all files", &[], |m| m.files.len() > 1, |m, _| source::close_all(m)),
    command(Page, "leave", "Stop watching this job", &[], |m| m.live().is_some(), |m, _| source::close_current(m)),
    command(Page, "next-file", "Show the next file", &[Chord::code("KeyK")], |m| m.files.len() > 1, |m, _| go::to_next_file(m)),
    command(Page, "share", "Share…", &[Chord::code("KeyU")], is_ready, |m, _| m.dispatch(Action::OpenDialog(Dialog::Share))),
    command(Page, "uploads", "My uploads", &[], |m| has_server(m) && m.has_uploads, |m, _| m.dispatch(Action::OpenDialog(Dialog::Uploads))),
    command(Page, "copy-link", "Copy link to this view", &[Chord::code("KeyL")], is_ready, |m, _| go::copy_link(m)),
    command(Page, "theme", "Switch theme: system, light, dark", &[Chord::code("KeyT")], always, |m, _| m.dispatch(Action::SetTheme(m.now().theme.next()))),
    command(Page, "help", "Show keys and gestures", &[Chord::char("?")], always, |m, _| m.dispatch(Action::OpenDialog(Dialog::Help))),
    command(Page, "palette", "Find a view, a command, a file, a job or a line", &[Chord::control("KeyK")], always, |m, _| m.dispatch(Action::OpenDialog(Dialog::Palette))),
    command(Page, "step-out", "Close or deselect", &[Chord::code("Escape")], always, |m, _| m.dispatch(Action::StepOut)),
];

/// Returns the commands that are available now.
pub fn live_commands(model: &Model) -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|command| (command.is_live)(model))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::model::Place;
    use crate::model::testing::{added, after, read, swept, watched};

    /// Models that together make every command available.
    fn models() -> Vec<Model> {
        let mut models = vec![after([]), after([added(0, "a")]), after([Action::SetHasUploads(true)])];
        models.push(after([added(0, "a"), read(0, &[1000]), Action::StepTo(0)]));
        for action in [Action::Select(Selection::None), Action::TogglePause, Action::SetCursor(3)] {
            let mode = "within a budget of 1 %".to_owned();
            let named = Action::SessionNamed { key: crate::model::FileKey(0), name: String::new(), mode };
            models.push(after(watched(0, 100).into_iter().chain([action, named])));
        }
        for tab in Tab::ALL {
            for layout in [SegmentLayout::ToScale, SegmentLayout::Packed] {
                let mut model = after([
                    added(0, "a"),
                    added(1, "b"),
                    read(0, &[1000]),
                    Action::SetTab(tab),
                    Action::Set(Setting::SegmentLayout(layout)),
                    Action::SetHighlight(Some("x".to_owned())),
                    Action::AddFilter("y".to_owned()),
                    Action::SetRange(Some((3, 9))),
                    Action::SetHeatmapOffsets(Some(query::Window { start: 0.0, end: 9.0 })),
                    Action::Select(Selection::Site(1)),
                    Action::TogglePin(crate::model::Pin::new(3, None, "p")),
                    Action::Set(Setting::Listing(Listing::Growth)),
                    Action::Set(Setting::SegmentGroup(SegmentGroup::Pool)),
                ]);
                models.push(model.clone());
                let split = Action::SetSplit(Some(model.preferences.second(model.view.tab, Side::Below)));
                models.push(crate::model::update(&model, split));
                models.push(crate::model::update(&model, Action::SetFlameBox(vec![7])));
                crate::model::testing::add_oom(&mut model);
                models.push(model);
            }
        }
        models
    }

    #[test]
    fn no_two_live_commands_share_a_key() {
        for model in models() {
            let live: Vec<_> = live_commands(&model).collect();
            for (i, one) in live.iter().enumerate() {
                for other in &live[i + 1..] {
                    let shared = one.chords.iter().any(|a| other.chords.iter().any(|b| a.collides(*b)));
                    assert!(!shared, "{} and {}", one.id, other.id);
                }
            }
        }
    }

    #[test]
    fn every_command_has_a_unique_name_and_can_be_live() {
        let ids: HashSet<_> = COMMANDS.iter().map(|command| command.id).collect();
        assert_eq!(ids.len(), COMMANDS.len());
        let titles: HashSet<_> = COMMANDS.iter().map(|command| command.title).collect();
        assert_eq!(titles.len(), COMMANDS.len());
        let live: HashSet<_> = models().iter().flat_map(|model| live_commands(model).map(|c| c.id)).collect();
        assert_eq!(live, ids, "commands that are never live");
    }

    #[test]
    fn the_menu_of_a_flame_box_names_the_keys_of_its_commands() {
        let offers = transforms::offers(&[3, 7]);
        assert_eq!(offers.len(), 10);
        for (id, _, key, _) in offers {
            let command = COMMANDS.iter().find(|command| command.id == id).unwrap_or_else(|| panic!("{id}"));
            assert!(command.chords.iter().any(|chord| chord.caps().join(" ") == key), "{id}: {key}");
        }
    }

    #[test]
    fn an_empty_page_offers_only_what_works() {
        let live: Vec<_> = live_commands(&after([])).map(|command| command.id).collect();
        assert_eq!(live, ["open", "explain", "sample", "demo", "theme", "help", "palette", "step-out"]);
        for place in [Place::OneFile, Place::Embedded] {
            let model = Model { place, ..after([]) };
            let live: Vec<_> = live_commands(&model).map(|command| command.id).collect();
            assert_eq!(live, ["open", "theme", "help", "palette", "step-out"], "{place:?}");
        }
    }

    #[test]
    fn a_sweep_offers_nothing_of_a_trace() {
        let live: Vec<_> = live_commands(&after([added(0, "a"), swept(0)])).map(|command| command.id).collect();
        assert_eq!(live, ["open", "explain", "sample", "sessions", "close", "theme", "help", "palette", "step-out"]);
    }
}
