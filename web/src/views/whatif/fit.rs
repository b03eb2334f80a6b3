//! Whether the runs would fit on other cards.

use query::whatif::{CARDS, Card, Why};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use crate::model::{Run, WhatIf};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::scroller::scroller;

/// Renders the cards, with the runs beside them.
pub fn section(whatif: &WhatIf) -> Html {
    let Some(opened) = &whatif.opened else { return Html::default() };
    let bounds = opened.bounds;
    let is_busy = whatif.runs.iter().any(|run| run.smallest.is_none());
    html! {
        <section aria-label="Would it fit?" data-testid="whatif-fit">
            <h2>{ "Would it fit?" }</h2>
            <p aria-busy={is_busy.to_string()} data-testid="whatif-least">{ for whatif.runs.iter().enumerate().map(|(number, run)| least(number, run)) }</p>
            <p class="quiet">
                { format!("What it needs is the least memory on which no request fails. That may be below the peak reserved, since cached memory is released where there is no room. Live tensors alone had {} at event {}: no setting needs less.", Bytes(bounds.exact_fit), Count((bounds.event + 1).into())) }
            </p>
            <details>
                <summary>{ "All cards" }</summary>
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
                                <tr key={card.name}>
                                    <th scope="row">{ card.name }</th>
                                    <td>{ bytes_text(card.usable()) }</td>
                                    { for whatif.runs.iter().map(|run| fits(run, card.usable())) }
                                </tr>
                            }) }
                        </tbody>
                    </table>
                }) }
            </details>
        </section>
    }
}

/// Renders the smallest card on which a run fits.
fn least(number: usize, run: &Run) -> Html {
    let bytes = match run.smallest {
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) => return Html::default(),
        // Its line is kept, so that nothing moves when it is known.
        None => return html! { format!("{} …", needs(number)) },
    };
    let far = if is_cut_short(run) { " as far as recorded" } else { "" };
    let card = Card::smallest_for(bytes)
        .map_or("no card in the list has it".to_owned(), |card| format!("{} or larger", card.name));
    html! { format!("{} {}{far}: {card}. ", needs(number), Bytes(bytes)) }
}

/// Returns how the sentence about a run begins. The first one is the run as it was recorded.
fn needs(number: usize) -> String {
    if number == 0 { "As recorded, the run needs".to_owned() } else { format!("Run {number} needs") }
}

/// Whether a run ends where the recording ran out of memory: what the job would have requested then is not known.
fn is_cut_short(run: &Run) -> bool {
    run.outcome.is_some_and(|outcome| outcome.stopped_why == Some(Why::Served))
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
        Some(Ok(bytes)) if *bytes <= usable => {
            html! { <td class="whatif-fits">{ if is_cut_short(run) { "fits as far as recorded" } else { "fits" } }</td> }
        }
        Some(Ok(_)) => html! { <td class="dim">{ "too small" }</td> },
        _ => html! { <td /> },
    }
}
