//! Small things to switch and to take away: toggle buttons, filter chips, and the colour chip of a class.

use shared::query::Paint;
use yew::prelude::*;

use crate::render::palette::Palette;

/// What [`chip`] is given.
pub struct ChipProps {
    /// What it says.
    pub text: AttrValue,
    /// Called when it is taken away.
    pub on_remove: Callback<()>,
}

/// A filter that is in force, with a button that takes it away.
pub fn chip(props: ChipProps) -> Html {
    let remove = props.on_remove.reform(|_| ());
    html! {
        <span class="chip" data-testid="filter-chip">
            <span class="chip-text" title={props.text.clone()}>{ props.text.clone() }</span>
            <button type="button" class="chip-remove" onclick={remove} aria-label={["Remove filter ", &props.text].concat()} title="Remove this filter">
                <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true"><path d="M1 1 7 7M7 1 1 7" /></svg>
            </button>
        </span>
    }
}

/// What [`toggle`] is given.
pub struct ToggleProps {
    /// Whether it is on.
    pub pressed: bool,
    /// Called when it is clicked.
    pub on_click: Callback<()>,
    /// What it says.
    pub children: Html,
    /// What hovering says.
    pub title: Option<AttrValue>,
    /// Its name for tests.
    pub testid: Option<AttrValue>,
}

/// A button that stays pressed.
pub fn toggle(props: ToggleProps) -> Html {
    html! {
        <button type="button" class="toggle" aria-pressed={props.pressed.to_string()} title={props.title.clone()}
            data-testid={props.testid.clone()} onclick={props.on_click.reform(|_| ())}>
            { props.children.clone() }
        </button>
    }
}

/// The colour of a call site, a stream or a pool, as a small square. It says nothing that the text beside it doesn't.
pub fn paint_chip(palette: &Palette, paint: Paint) -> Html {
    html! {
        <svg class="paint" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" rx="2" fill={palette.fill(paint.base()).css()} />
        </svg>
    }
}
