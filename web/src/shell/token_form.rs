//! Asks for the server's token. The token is kept while the tab is open.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::source::http;

/// Said before a token was entered.
const NEEDED: &str = "This server requires a token. If it printed a link when it started, open that; otherwise ask the person \
                      who runs it for a token with the role read.";

/// Properties of [`TokenForm`].
#[derive(PartialEq, Properties)]
pub struct TokenProps {
    /// Why the token that was entered is not enough, as a sentence; empty if none was entered.
    pub reason: String,
    /// Called when a token was entered.
    pub on_token: Callback<()>,
}

/// Returns the token in what was pasted: a token, or the link that a server printed.
fn pasted_token(text: &str) -> &str {
    let from = text.split_once("token=").map_or(text, |(_, token)| token);
    from.split('&').next().unwrap_or_default().trim()
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
                http::set_token(pasted_token(&input.value()));
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
            <p class="drop-note">{ "Kept in this tab only, until it is closed." }</p>
        </form>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_pasted_as_well_as_its_token() {
        for text in ["0a1b", " 0a1b\n", "http://127.0.0.1:7070/#token=0a1b", "http://h/s/1#token=0a1b&tab=flame"] {
            assert_eq!(pasted_token(text), "0a1b", "{text}");
        }
    }
}
