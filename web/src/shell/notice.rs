//! A short notice over the status line.

use yew::prelude::*;

use crate::browser::{Timeout, use_effect_with};
use crate::hooks::use_model_of;
use crate::model::{Action, Parts};
use crate::source;
use crate::widgets::icon::{Symbol, icon};

/// How long the notice stays, in milliseconds: enough to read two sentences.
const STAY_MS: i32 = 10_000;

/// The notice, if there is one.
#[component]
pub fn Notice() -> Html {
    let model = use_model_of(Parts::REST);
    let timer = use_mut_ref(|| None::<Timeout>);
    {
        let model = model.clone();
        use_effect_with(model.notice.clone(), move |notice| {
            // One with a choice stays until the user makes it.
            let passing = notice.as_ref().filter(|notice| notice.withheld.is_none() && !notice.is_waiting);
            *timer.borrow_mut() = passing.map(|_| Timeout::new(STAY_MS, move || model.dispatch(Action::DismissNotice)));
        });
    }
    let onclick = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::DismissNotice))
    };
    let apply = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::ApplyWithheld))
    };
    let cancel = {
        let model = model.clone();
        Callback::from(move |_| source::stop_waiting(&model))
    };
    html! {
        <div class="notice-place" role="status">
            if let Some(notice) = &model.notice {
                <p class="notice" data-testid="notice">
                    <span>{ notice.text.clone() }</span>
                    if notice.withheld.is_some() {
                        <button type="button" class="toolbar-button" onclick={apply} data-testid="notice-apply">{ "Apply anyway" }</button>
                    }
                    if notice.is_waiting {
                        <button type="button" class="toolbar-button" onclick={cancel} data-testid="notice-cancel">{ "Cancel" }</button>
                    } else {
                        <button type="button" class="icon-button" aria-label="Dismiss" {onclick}>{ icon(Symbol::Cross) }</button>
                    }
                </p>
            }
        </div>
    }
}
