//! Asks for the server's token. The token is kept while the tab is open.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::source::server;

/// Said before a token was entered.
const NEEDED: &str = "This server requires a token. Ask the person who runs it for one that may read, or open the link that \
                      the server printed when it started.";

/// Properties of [`TokenForm`].
#[derive(PartialEq, Properties)]
pub struct TokenProps {
    /// Why the token that was entered is not enough, as a sentence; empty if none was entered.
    pub reason: String,
    /// Called when a token was entered.
    pub on_token: Callback<()>,
}

/// The form for a token.
#[component]
pub fn TokenForm(props: &TokenProps) -> Html {
    let input = use_node_ref();
    let onsubmit = {
        let (input, on_token) = (input.clone(), props.on_token.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            if let Some(input) = input.cast::<HtmlInputElement>() {
                server::set_token(&input.value());
                on_token.emit(());
            }
        })
    };
    html! {
        <form class="token" {onsubmit} data-testid="token">
            <label for="token-input">
                { if props.reason.is_empty() { NEEDED } else { &*props.reason } }
            </label>
            <p class="buttons">
                <input id="token-input" ref={input} class="token-input" type="password" autocomplete="off" spellcheck="false" data-testid="token-input" />
                <button class="button is-primary" data-testid="token-give">{ "Continue" }</button>
            </p>
            <p class="drop-note">{ "Kept until this tab is closed." }</p>
        </form>
    }
}
