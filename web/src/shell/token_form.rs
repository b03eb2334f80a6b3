//! Asks for the token that the server's owner gave out. It is kept for as long as the tab is open.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::hooks::part::part;
use crate::source::server;

/// What [`token_form`] is given.
#[derive(PartialEq)]
pub struct TokenProps {
    /// Whether one was typed, and is not the right one.
    pub is_wrong: bool,
    /// Called when one was typed.
    pub on_token: Callback<()>,
}

part!(
    /// The form.
    pub fn token_form(TokenProps) = use_token_form
);

#[hook]
fn use_token_form(props: &TokenProps) -> Html {
    let input = use_node_ref();
    let take = {
        let (input, on_token) = (input.clone(), props.on_token.clone());
        move || {
            if let Some(input) = input.cast::<HtmlInputElement>() {
                server::set_token(&input.value());
                on_token.emit(());
            }
        }
    };
    let onclick = {
        let take = take.clone();
        Callback::from(move |_: MouseEvent| take())
    };
    let onkeydown = Callback::from(move |event: KeyboardEvent| {
        if event.key() == "Enter" {
            take();
        }
    });
    html! {
        <div class="token" data-testid="token">
            <label for="token-input">
                { if props.is_wrong { "That token is not the one this server wants. It is printed where the server was started." }
                  else { "This server wants a token. It is printed where the server was started." } }
            </label>
            <p class="buttons">
                <input id="token-input" ref={input} class="token-input" type="password" autocomplete="off" spellcheck="false" {onkeydown} data-testid="token-input" />
                <button type="button" class="button is-primary" {onclick} data-testid="token-give">{ "Continue" }</button>
            </p>
            <p class="drop-note">{ "Kept in this tab until it is closed." }</p>
        </div>
    }
}
