//! Whether the runs would fit on other cards.

use query::whatif::CARDS;
use trace::units::{Bytes, Count};
use yew::prelude::*;

use crate::model::{Run, WhatIf};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::scroller::scroller;

/// Renders the cards, with the runs beside them.
pub fn section(whatif: &WhatIf) -> Html {
    let Some(opened) = &whatif.opened else { return Html::default() };
    let bounds = opened.bounds;
    html! {
        <section aria-label="Would it fit?" data-testid="whatif-fit">
            <h2>{ "Would it fit?" }</h2>
            <p class="quiet">
                { format!("What was served held {} in live tensors at event {}.", Bytes(bounds.exact_fit), Count((bounds.event + 1).into())) }
            </p>
            { scroller("Table of capacities", html! {
                <table class="whatif-table">
                    <thead>
                        <tr>
                            <th>{ "Card" }</th>
                            <th title="What a process can have of it: its memory without a CUDA context">{ "Usable" }</th>
                            { for (0..whatif.runs.len()).map(|number| html! { <th>{ format!("Run {number}") }</th> }) }
                        </tr>
                    </thead>
                    <tbody>
                        <tr>
                            <th scope="row">{ "Needs at least" }</th>
                            <td />
                            { for whatif.runs.iter().map(|run| html! { <td>{ needed(run) }</td> }) }
                        </tr>
                        { for CARDS.iter().map(|card| html! {
                            <tr>
                                <th scope="row">{ card.name }</th>
                                <td>{ bytes_text(card.usable()) }</td>
                                { for whatif.runs.iter().map(|run| fits(run, card.usable())) }
                            </tr>
                        }) }
                    </tbody>
                </table>
            }) }
        </section>
    }
}

fn needed(run: &Run) -> Html {
    match &run.smallest {
        Some(Ok(bytes)) => bytes_text(*bytes),
        Some(Err(_)) => html! { "–" },
        None => html! { "…" },
    }
}

fn fits(run: &Run, usable: u64) -> Html {
    match &run.smallest {
        Some(Ok(bytes)) if *bytes <= usable => html! { <td class="whatif-fits">{ "fits" }</td> },
        Some(Ok(_)) => html! { <td class="dim">{ "too small" }</td> },
        _ => html! { <td /> },
    }
}
