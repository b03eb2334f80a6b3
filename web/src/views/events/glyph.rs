//! The glyph of each action. Shape and colour together carry the meaning.

use trace::event::Action;
use yew::prelude::*;

/// Renders the glyph of an action by name; a plain dot for unknown ones.
pub fn glyph(action: &str) -> Html {
    let action = Action::from_name(action).unwrap_or(Action::Other);
    html! {
        <svg class={classes!("glyph", class(action))} viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <path d={shape(action)} />
        </svg>
    }
}

/// Returns the class that colours an action.
pub fn class(action: Action) -> &'static str {
    match action {
        Action::Alloc => "act-alloc",
        Action::FreeRequested => "act-pending",
        Action::FreeCompleted => "act-free",
        Action::SegmentAlloc | Action::SegmentMap | Action::SegmentFree | Action::SegmentUnmap => "act-segment",
        Action::Oom => "act-oom",
        Action::Snapshot | Action::UserDefined | Action::Annotate | Action::Other => "act-other",
    }
}

/// Returns the glyph's path. Triangles point up for allocations and down for frees; squares are whole segments; a flag
/// marks out of memory.
fn shape(action: Action) -> &'static str {
    match action {
        Action::Alloc => "M5 1 9 8H1Z",
        Action::FreeRequested => "M1 2H9L5 9ZM3 3.2 5 6.7 7 3.2Z",
        Action::FreeCompleted => "M1 2H9L5 9Z",
        Action::SegmentAlloc | Action::SegmentMap => "M1 1H9V9H1ZM4.3 2.5V4.3H2.5V5.7H4.3V7.5H5.7V5.7H7.5V4.3H5.7V2.5Z",
        Action::SegmentFree | Action::SegmentUnmap => "M1 1H9V9H1ZM2.5 4.3V5.7H7.5V4.3Z",
        Action::Oom => "M2 0.5H3.2V1L9 1 7.2 3.5 9 6H3.2V9.5H2Z",
        Action::Snapshot => "M5 1A4 4 0 1 1 4.99 1ZM5 3A2 2 0 1 0 5.01 3Z",
        Action::UserDefined | Action::Annotate => "M1 2.5H6L9 5 6 7.5H1Z",
        Action::Other => "M5 3A2 2 0 1 1 4.99 3Z",
    }
}
