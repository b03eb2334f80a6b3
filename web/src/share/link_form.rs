//! The terms of a link: its name, how long it lasts, its password, and who can open it.

use shared::units::Bytes;
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use super::choices::Lifetime;
use crate::source::shares::{Sharing, Terms};

/// The most characters of a name, and of a password.
const MOST_CHARS: &str = "200";

/// Properties of [`LinkForm`].
#[derive(PartialEq, Properties)]
pub struct LinkFormProps {
    /// What the server offers.
    pub sharing: Sharing,
    /// The terms so far.
    pub terms: Terms,
    /// Called with new terms.
    pub on_terms: Callback<Terms>,
}

/// The terms of a link, apart from its name.
#[component]
pub fn LinkForm(props: &LinkFormProps) -> Html {
    let LinkFormProps { sharing, terms, .. } = props;
    let (lifetimes, _) = Lifetime::allowed(sharing);
    let on_lifetime = {
        let (terms, on_terms, lifetimes) = (terms.clone(), props.on_terms.clone(), lifetimes.clone());
        Callback::from(move |event: Event| {
            let Some(select) = event.target_dyn_into::<HtmlSelectElement>() else { return };
            let chosen = usize::try_from(select.selected_index()).ok().and_then(|index| lifetimes.get(index));
            if let Some(lifetime) = chosen {
                on_terms.emit(Terms { seconds: lifetime.seconds, ..terms.clone() });
            }
        })
    };
    let on_password = {
        let (terms, on_terms) = (terms.clone(), props.on_terms.clone());
        Callback::from(move |event: InputEvent| {
            if let Some(input) = event.target_dyn_into::<HtmlInputElement>() {
                on_terms.emit(Terms { password: input.value(), ..terms.clone() });
            }
        })
    };
    let on_public = {
        let (terms, on_terms) = (terms.clone(), props.on_terms.clone());
        Callback::from(move |event: Event| {
            if let Some(input) = event.target_dyn_into::<HtmlInputElement>() {
                on_terms.emit(Terms { is_public: input.checked(), ..terms.clone() });
            }
        })
    };
    let options = lifetimes.iter().map(|lifetime| {
        html! { <option selected={lifetime.seconds == terms.seconds}>{ lifetime.label.clone() }</option> }
    });
    html! {
        <>
            <label class="share-field"><span>{ "Expires" }</span>
                <select class="share-input" onchange={on_lifetime} data-testid="share-expiry">{ for options }</select>
            </label>
            <label class="share-field"><span>{ "Password" }</span>
                <input class="share-input" type="password" autocomplete="new-password" maxlength={MOST_CHARS} placeholder="Optional"
                    value={terms.password.clone()} oninput={on_password} data-testid="share-password" />
            </label>
            <div class="share-who">
                if sharing.is_public_allowed {
                    <label class="share-check">
                        <input type="checkbox" checked={terms.is_public} onchange={on_public} data-testid="share-public" />
                        { "Anyone with the link can open it" }
                    </label>
                } else {
                    { "People who may read on this server can open the link." }
                }
                <span class="quiet">{ format!(" At most {}.", Bytes(sharing.most_bytes)) }</span>
            </div>
        </>
    }
}

/// Renders the field for the name. A change is reported when the field is left.
pub fn name_field(name: &str, on_name: &Callback<String>) -> Html {
    let onchange = on_name.reform(|event: Event| {
        event.target_dyn_into::<HtmlInputElement>().map(|input| input.value()).unwrap_or_default().trim().to_owned()
    });
    html! {
        <label class="share-field"><span>{ "Name" }</span>
            <input class="share-input" type="text" maxlength={MOST_CHARS} spellcheck="false" autocomplete="off" value={name.to_owned()}
                {onchange} data-testid="share-name" />
        </label>
    }
}
