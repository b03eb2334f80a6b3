//! The line on top: how far the runs can be trusted.

use trace::units::{Bytes, Count, counted};
use yew::prelude::*;

use crate::hooks::{ModelHandle, open_whatif};
use crate::model::{Action, WhatIf};
use crate::views::controls::sends;
use crate::widgets::format::share;

/// Renders how much of the recording comes out as recorded.
pub fn check_line(model: &ModelHandle, whatif: &WhatIf) -> Html {
    if let Some(sentence) = &whatif.failed {
        return html! { <p class="whatif-check is-refused" role="alert" data-testid="whatif-failed">{ sentence.clone() }</p> };
    }
    let Some(opened) = &whatif.opened else {
        return html! { <p class="whatif-check" role="status" data-testid="whatif-loading">{ "Checking what the allocator answers against what was recorded…" }</p> };
    };
    let check = &opened.check;
    let all = counted(check.requests, "request");
    let said = format!("{} of {all} replayed at their recorded address", Count(check.equal));
    let newest = model.device().filter(|device| model.live().is_some() && device.events != opened.events);
    html! {
        <p class="whatif-check" role="status" data-testid="whatif-check" data-exact={check.is_exact().to_string()}>
            if check.lost > 0 {
                <span class="whatif-warning">{ format!("Missing from this trace: {} of the run. The runs below are of what was read. ", counted(check.lost, "event")) }</span>
            }
            if let Some(first) = &check.first_difference {
                <span class="whatif-warning">{ format!("{said} ({}).", share(check.equal, check.requests)) }</span>
                { " The first difference is at " }
                <button type="button" class="link" title={first.why.clone()} onclick={sends(model, Action::ShowPosition(first.event + 1))} data-testid="whatif-difference">
                    { format!("event {}", Count((first.event + 1).into())) }
                </button>
                { ". The runs are exact up to there, and estimates beyond." }
            } else if check.lost > 0 {
                { format!("{said} under the recorded settings.") }
            } else {
                { format!("Replay check passed: {all} came out at their recorded address. The predictions are exact, as far as the recording goes.") }
            }
            if opened.at_start > 0 {
                { format!(" {} was reserved before the first event. It stays as it was recorded.", Bytes(opened.at_start)) }
            }
            if newest.is_some() {
                { format!(" They are of the first {}. ", counted(opened.events.into(), "event")) }
                <button type="button" class="act" onclick={again(model)} data-testid="whatif-again">{ "Read the newest" }</button>
            }
        </p>
    }
}

fn again(model: &ModelHandle) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |_| open_whatif(&model))
}
