//! Small controls: toggle buttons, filter chips, and the colour chip of a class.

use query::Paint;
use yew::prelude::*;

use crate::render::palette::Palette;

/// Renders an active filter with a button that removes it.
pub fn chip(text: &str, on_remove: &Callback<()>) -> Html {
    let text = AttrValue::from(text.to_owned());
    let remove = on_remove.reform(|_| ());
    html! {
        <span class="chip" data-testid="filter-chip">
            <span class="chip-text" title={&text}>{ &text }</span>
            <button type="button" class="chip-remove" onclick={remove} aria-label={format!("Remove filter {text}")} title="Remove filter">
                <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true"><path d="M1 1 7 7M7 1 1 7" /></svg>
            </button>
        </span>
    }
}

/// Renders a toggle button. `testid` is its test id, `title` its tooltip, if any.
pub fn toggle(
    pressed: bool,
    on_click: &Callback<()>,
    testid: impl Into<AttrValue>,
    title: Option<&'static str>,
    label: Html,
) -> Html {
    html! {
        <button type="button" class="toggle" aria-pressed={pressed.to_string()} {title}
            data-testid={testid.into()} onclick={on_click.reform(|_| ())}>
            { label }
        </button>
    }
}

/// Renders the colour of a call site, a stream or a pool as a small square. It is hidden from screen readers, since the
/// text beside it says the same.
pub fn paint_chip(palette: &Palette, paint: Paint) -> Html {
    html! {
        <svg class="paint" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <rect width="10" height="10" rx="2" fill={palette.fill(paint.unmarked()).css()} />
        </svg>
    }
}
