//! The dialog that asks whether to open what another site offers. However it is closed, that is a no.

use trace::units::Bytes;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::use_model_of;
use crate::model::{Action, OfferedBy, Parts};
use crate::source;
use crate::views::controls::sends;
use crate::widgets::dialog::Modal;

/// The dialog.
#[component]
pub fn OfferDialog() -> Html {
    let model = use_model_of(Parts::REST);
    let remember = use_node_ref();
    let is_accepted = use_mut_ref(|| false);
    {
        let is_accepted = is_accepted.clone();
        let is_address = matches!(model.offer.as_ref().map(|offer| &offer.by), Some(OfferedBy::Address { .. }));
        use_effect_with((), move |()| {
            move || {
                source::refuse_message();
                if is_address && !*is_accepted.borrow() {
                    source::refuse_address();
                }
            }
        });
    }
    let Some(offer) = model.offer.clone() else { return Html::default() };
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    let on_open = {
        let (model, offer, remember) = (model.clone(), offer.clone(), remember.clone());
        Callback::from(move |_: MouseEvent| {
            *is_accepted.borrow_mut() = true;
            let is_remembered = remember.cast::<HtmlInputElement>().is_some_and(|input| input.checked());
            match offer.by {
                OfferedBy::Address { .. } => source::accept_address(&model, offer.clone()),
                OfferedBy::Message { .. } => source::accept_message(&model, is_remembered),
            }
            model.dispatch(Action::CloseDialog);
        })
    };
    let body = match &offer.by {
        OfferedBy::Address { url } => html! {
            <>
                <p>{ "Open “" }<strong>{ offer.name.clone() }</strong>{ "” from " }<strong data-testid="offer-origin">{ offer.origin.clone() }</strong>{ "?" }</p>
                <pre class="offer-url" data-testid="offer-url">{ url.clone() }</pre>
                <p class="quiet">{ "Your browser fetches it, without cookies. The server of this page does not see the file." }</p>
            </>
        },
        OfferedBy::Message { bytes } => html! {
            <>
                <p><strong data-testid="offer-origin">{ offer.origin.clone() }</strong>{ " wants to show “" }<strong>{ offer.name.clone() }</strong>{ format!("” ({}) here.", Bytes(*bytes)) }</p>
                <p class="quiet">{ "The trace stays in this browser. That site learns only whether you open it." }</p>
                <label class="offer-remember">
                    <input ref={remember} type="checkbox" data-testid="offer-remember" />
                    { "Don't ask again for this site in this browser" }
                </label>
            </>
        },
    };
    html! {
        <Modal title="Open a trace from another site" is_title_hidden={false} {on_close} class="folding offer" test_id="offer">
            <div class="folding-body">
                { body }
                <p class="buttons">
                    // The default is what is safe: somebody who presses Enter without reading opens nothing.
                    <button type="button" class="button is-primary" onclick={sends(&model, Action::CloseDialog)} data-autofocus="true" data-testid="offer-refuse">{ "Don't open" }</button>
                    <button type="button" class="button" onclick={on_open} data-testid="offer-accept">{ "Open" }</button>
                </p>
            </div>
        </Modal>
    }
}
