//! The terms of a link: its name, how long it lasts, its password, and who can open it.

use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use super::audience;
use super::choices::Lifetime;
use crate::source::shares::{Sharing, Terms};

/// The most characters of a name, and of a password.
const MOST_CHARS: &str = "200";

/// What [`link_form`] needs.
pub struct LinkFormProps {
    /// What the server offers.
    pub sharing: Sharing,
    /// The terms so far.
    pub terms: Terms,
    /// Called with new terms.
    pub on_terms: Callback<Terms>,
    /// Called when Enter is pressed in a field of text.
    pub on_enter: Callback<()>,
}

/// The id of the field for the password.
pub const PASSWORD_ID: &str = "share-password";

/// Said of a password that nobody could tell from none.
pub const BLANK_PASSWORD: &str =
    "A password can't consist of spaces only. Enter another one, or leave the field empty.";

/// Returns whether a password is refused. Any other one is used exactly as it was typed.
pub fn is_blank(password: &str) -> bool {
    !password.is_empty() && password.trim().is_empty()
}

/// Returns what calls `on_enter` when Enter is pressed.
fn on_enter_key(on_enter: &Callback<()>) -> Callback<KeyboardEvent> {
    let on_enter = on_enter.clone();
    Callback::from(move |event: KeyboardEvent| {
        if event.key() == "Enter" && !event.is_composing() {
            event.prevent_default();
            on_enter.emit(());
        }
    })
}

/// The terms of a link, apart from its name.
pub fn link_form(props: &LinkFormProps) -> Html {
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
                <input id={PASSWORD_ID} class="share-input" type="password" autocomplete="new-password" maxlength={MOST_CHARS} placeholder="Optional"
                    value={terms.password.clone()} oninput={on_password} onkeydown={on_enter_key(&props.on_enter)}
                    aria-invalid={is_blank(&terms.password).to_string()} aria-describedby="share-failure" data-testid="share-password" />
            </label>
            <div class="share-who">
                if sharing.is_public_allowed {
                    <label class="share-check">
                        <input type="checkbox" checked={terms.is_public} onchange={on_public} data-testid="share-public" />
                        { "Anyone with the link can open it" }
                    </label>
                } else {
                    <span data-testid="share-who">{ audience::who(false) }{ " " }</span>
                }
                <span class="quiet share-reach" data-testid="share-reach">{ audience::reach() }</span>
            </div>
        </>
    }
}

/// Renders the field for the name. `typed` is what it shows; `name` becomes that when the field is left or Enter is pressed.
pub fn name_field(typed: &UseStateHandle<String>, name: &UseStateHandle<String>, on_enter: &Callback<()>) -> Html {
    fn value(input: Option<HtmlInputElement>) -> String {
        input.map(|input| input.value()).unwrap_or_default()
    }
    let oninput = {
        let typed = typed.setter();
        Callback::from(move |event: InputEvent| typed.set(value(event.target_dyn_into())))
    };
    let finish = {
        let name = name.setter();
        move |input| name.set(value(input).trim().to_owned())
    };
    let onchange = {
        let finish = finish.clone();
        Callback::from(move |event: Event| finish(event.target_dyn_into()))
    };
    let onkeydown = {
        let on_key = on_enter_key(on_enter);
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Enter" {
                finish(event.target_dyn_into());
            }
            on_key.emit(event);
        })
    };
    html! {
        <label class="share-field"><span>{ "Name" }</span>
            <input class="share-input" type="text" maxlength={MOST_CHARS} spellcheck="false" autocomplete="off" value={(**typed).clone()}
                {oninput} {onchange} {onkeydown} data-testid="share-name" />
        </label>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blank_passwords_are_refused() {
        for (password, want) in [("", false), (" ", true), (" \t\u{3000}", true), (" abc ", false), ("x", false)] {
            assert_eq!(is_blank(password), want, "{password:?}");
        }
    }
}
