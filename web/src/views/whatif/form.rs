//! What the next run is under: as the line to paste, and as controls that write it.

use query::setting::{self, ALLOC_CONF, option, with_option};
use query::whatif::CARDS;
use trace::units::Bytes;
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use crate::hooks::{ModelHandle, add_run, change_whatif};
use crate::model::{MOST_RUNS, RunConditions, WhatIfStep};
use crate::widgets::copy::CopyButton;
use crate::widgets::draft_field::DraftField;

/// The id of the list of cards that inputs refer to.
pub const CARDS_ID: &str = "whatif-cards";

/// Options that are typed: name, hint, what an example looks like.
const TYPED: [(&str, &str, &str); 4] = [
    ("max_split_size_mb", "Blocks above this many MiB are never split. At least 21", "none"),
    (
        "large_segment_size_mb",
        "Segments for requests below 10 MiB are this many MiB large. PyTorch 2.11 and later",
        "20",
    ),
    ("roundup_power2_divisions", "Sizes are rounded up to this many steps between powers of two", "none"),
    ("garbage_collection_threshold", "Above this share of the memory, unused blocks are released", "off"),
];

/// Where the device is written: the field, its name, hint, example.
type Field = (fn(&mut RunConditions) -> &mut String, &'static str, &'static str, &'static str);

/// The controls with the button that adds a run.
pub fn settings(model: &ModelHandle) -> Html {
    let model = model.clone();
    let Some(whatif) = model.whatif() else { return Html::default() };
    let Some(opened) = &whatif.opened else { return Html::default() };
    let draft = &whatif.draft;
    let is_full = whatif.runs.len() >= MOST_RUNS;
    let as_recorded = opened.capacity.map_or_else(|| "no limit".to_owned(), |bytes| Bytes(bytes).to_string());
    let onsubmit = {
        let model = model.clone();
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            if let Some(whatif) = model.now().whatif() {
                add_run(&model, &whatif.draft);
            }
        })
    };
    let on_release = {
        let model = model.clone();
        Callback::from(move |event: Event| {
            let torch = event.target_unchecked_into::<HtmlSelectElement>().value();
            change(&model, |conditions| conditions.torch = torch);
        })
    };
    let on_expandable = {
        let model = model.clone();
        Callback::from(move |event: Event| {
            let value = event.target_unchecked_into::<HtmlSelectElement>().value();
            change(&model, |conditions| conditions.conf = with_option(&conditions.conf, "expandable_segments", &value));
        })
    };
    let expandable = option(&draft.conf, "expandable_segments");
    let fields: [Field; 3] = [
        (
            |conditions| &mut conditions.capacity,
            "Memory of the device",
            "The name of a card, or a size such as 80GiB",
            "as recorded",
        ),
        (|conditions| &mut conditions.fraction, "Fraction", "torch.cuda.set_per_process_memory_fraction", "1"),
        (
            |conditions| &mut conditions.others,
            "Held by others",
            "Memory of the device that other processes hold, such as 2GiB",
            "0",
        ),
    ];
    html! {
        <section aria-label="Another run">
            <h2>{ "Another run" }</h2>
            <form class="whatif-form" {onsubmit}>
                <div class="whatif-line">
                    <label for="whatif-conf"><code>{ ALLOC_CONF }</code></label>
                    <input id="whatif-conf" class="mono" type="text" spellcheck="false" autocomplete="off" value={draft.conf.clone()} placeholder="default settings"
                        oninput={writes(&model, |conditions, text| conditions.conf = text)} data-testid="whatif-conf" />
                    <CopyButton text={setting::line(&draft.conf)} label="Copy" />
                </div>
                <div class="whatif-fields">
                    <label>
                        <span>{ "expandable_segments" }</span>
                        <select onchange={on_expandable} data-testid="whatif-expandable">
                            { for ["", "True", "False"].into_iter().map(|value| html! {
                                <option {value} selected={expandable.eq_ignore_ascii_case(value)}>{ if value.is_empty() { "default" } else { value } }</option>
                            }) }
                        </select>
                    </label>
                    { for TYPED.into_iter().map(|(name, title, placeholder)| html! {
                        <label key={name} {title}>
                            <span>{ name }</span>
                            <DraftField {placeholder} value={option(&draft.conf, name).to_owned()} test_id={name}
                                on_finish={finishes(&model, move |conditions, text| conditions.conf = with_option(&conditions.conf, name, &text))} />
                        </label>
                    }) }
                    <label>
                        <span>{ "Release of PyTorch" }</span>
                        <select onchange={on_release} data-testid="whatif-release">
                            <option value="" selected={draft.torch.is_empty()}>{ format!("as recorded ({})", opened.recorded.torch) }</option>
                            { for opened.releases.iter().map(|torch| html! {
                                <option value={torch.clone()} selected={draft.torch == *torch}>{ torch.clone() }</option>
                            }) }
                        </select>
                    </label>
                    { for fields.into_iter().map(|(field, name, title, placeholder)| {
                        let is_capacity = name == "Memory of the device";
                        let placeholder = if is_capacity { format!("{placeholder}: {as_recorded}") } else { placeholder.to_owned() };
                        let list = is_capacity.then_some(CARDS_ID);
                        html! {
                            <label key={name} {title}>
                                <span>{ name }</span>
                                <input type="text" autocomplete="off" {list} {placeholder} value={field(&mut draft.clone()).clone()}
                                    oninput={writes(&model, move |conditions, text| *field(conditions) = text)} data-testid={format!("whatif-{}", name.split(' ').next().unwrap_or_default().to_ascii_lowercase())} />
                            </label>
                        }
                    }) }
                </div>
                <datalist id={CARDS_ID}>
                    { for CARDS.iter().map(|card| html! { <option value={card.name}>{ Bytes(card.usable()).to_string() }</option> }) }
                </datalist>
                <div class="whatif-acts">
                    <button type="submit" class="button is-primary" disabled={is_full} data-testid="whatif-add">{ "Add run" }</button>
                    if let Some(sentence) = &whatif.refused {
                        <p class="is-refused" role="alert" data-testid="whatif-refused">{ sentence.clone() }</p>
                    } else if is_full {
                        <p class="dim">{ "Remove a run to add another." }</p>
                    }
                </div>
            </form>
        </section>
    }
}

/// Changes what the next run is under.
pub fn change(model: &ModelHandle, change: impl FnOnce(&mut RunConditions)) {
    let Some(mut conditions) = model.now().whatif().map(|whatif| whatif.draft.clone()) else { return };
    change(&mut conditions);
    change_whatif(model, WhatIfStep::Draft(Box::new(conditions)));
}

/// Returns a callback that writes the text of an input into the draft.
fn writes(model: &ModelHandle, write: impl Fn(&mut RunConditions, String) + 'static) -> Callback<InputEvent> {
    let model = model.clone();
    Callback::from(move |event: InputEvent| {
        let input = event.target_dyn_into::<HtmlInputElement>();
        if let Some(text) = input.map(|input| input.value()) {
            change(&model, |conditions| write(conditions, text));
        }
    })
}

/// Returns a callback that writes a finished text into the draft.
fn finishes(model: &ModelHandle, write: impl Fn(&mut RunConditions, String) + 'static) -> Callback<String> {
    let model = model.clone();
    Callback::from(move |text| change(&model, |conditions| write(conditions, text)))
}
