//! The key: explains the areas, lines and marks of the timeline that the trace has. The legend explains the colours.

use yew::prelude::*;

use crate::hooks::ModelHandle;

/// The marks that are in every trace.
const ALWAYS: [(&str, &str); 5] = [
    ("line", "reserved"),
    ("cached", "cached: reserved, not in use"),
    ("rounding", "lost to rounding"),
    ("other", "too small to draw separately"),
    ("cursor", "cursor"),
];

/// The key of the timeline's areas, lines and marks.
pub fn key(model: &ModelHandle) -> Html {
    let model = model.clone();
    let Some(device) = model.device().filter(|device| device.events > 0) else { return Html::default() };
    let has_steps = device.annotations > 0;
    let sometimes = [
        (device.peak.requested > 0, "peak", "peak of requested memory"),
        (device.streams.len() > 1, "pending", "freed, waiting for a stream"),
        (!device.pools.is_empty(), "private", "in a private pool"),
        (!device.ooms.is_empty(), "flag", "out of memory"),
        (!device.ooms.is_empty(), "failed", "request that failed"),
        (device.losses > 0, "lost", "events are missing"),
        (has_steps, "span", "annotation"),
        (!model.view.pins.is_empty(), "pinned", "pinned moment"),
        (model.view.extended_range().is_some(), "range", "selected range"),
    ];
    let items = ALWAYS.into_iter().chain(sometimes.into_iter().filter(|item| item.0).map(|item| (item.1, item.2)));
    html! {
        <section class="key" aria-label="Key" data-testid="key">
            <b>{ "Key" }</b>
            <span class="state-key">
                { for items.map(|(class, name)| html! {
                    <span class="state-key-item" key={class}><span class={classes!("state-swatch", class)} aria-hidden="true" />{ name }</span>
                }) }
            </span>
        </section>
    }
}
