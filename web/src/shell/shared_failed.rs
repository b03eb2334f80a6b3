//! The page of a shared trace that can't be opened: what stands in the way, and what to do next.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::token_form::TokenForm;
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, FileEntry, FileKey, SharedLink, Trouble};
use crate::source;
use crate::views::controls::sends;

/// Renders what stands in the way of a shared trace.
pub fn shared_failed(model: &ModelHandle, file: &FileEntry, link: &SharedLink, message: &str) -> Html {
    let again = {
        let (model, key, link) = (model.clone(), file.key, link.clone());
        move || source::open_again(&model, key, &link)
    };
    let on_token = {
        let again = again.clone();
        Callback::from(move |()| again())
    };
    let on_again = Callback::from(move |_: MouseEvent| again());
    let (title, body, can_retry) = match &link.trouble {
        Some(Trouble::Password { is_wrong }) => {
            let form =
                html! { <PasswordForm key={file.key.0} file={file.key} link={link.clone()} is_wrong={*is_wrong} /> };
            ("This trace needs a password", form, false)
        }
        Some(Trouble::Token) => {
            let reason = if source::server::token().is_empty() { "" } else { WRONG_TOKEN };
            ("This trace is on a server that requires a token", html! { <TokenForm {reason} {on_token} /> }, false)
        }
        // The server says what to do next.
        Some(Trouble::Gone(_)) => ("This link is gone", reason(message, ""), false),
        Some(Trouble::Unknown) => ("There is no such link", reason(UNKNOWN, ASK_FOR_ANOTHER), true),
        Some(Trouble::Other(_)) | None => ("Can't open the shared trace", reason(message, ""), true),
    };
    html! {
        <main class="stage" data-testid="failed">
            <div class="failed" role="alert" data-testid="shared-failed">
                <h1>{ title }</h1>
                { body }
                <p class="buttons failed-buttons">
                    if can_retry {
                        <button type="button" class="button is-primary" onclick={on_again} data-testid="shared-again">{ "Try again" }</button>
                    }
                    <button type="button" class="button" onclick={sends(model, Action::ShowStart)} data-testid="shared-leave">{ "Go to the start page" }</button>
                </p>
            </div>
        </main>
    }
}

const WRONG_TOKEN: &str = "The server refused the token. Enter one that may read.";
const UNKNOWN: &str = "The server knows no trace under this address. Part of the address may be missing.";
const ASK_FOR_ANOTHER: &str = "Ask the person who sent it for a new link.";

fn reason(message: &str, advice: &'static str) -> Html {
    html! {
        <>
            <p class="failed-message" data-testid="error-message">{ message.to_owned() }</p>
            <p class="failed-note">{ advice }</p>
        </>
    }
}

/// Properties of [`PasswordForm`].
#[derive(PartialEq, Properties)]
struct PasswordProps {
    /// The shared trace.
    file: FileKey,
    /// Its link.
    link: SharedLink,
    /// Whether a password was entered that is wrong.
    is_wrong: bool,
}

/// The form for a link's password.
#[component]
fn PasswordForm(props: &PasswordProps) -> Html {
    let model = use_model();
    let input = use_node_ref();
    {
        let input = input.clone();
        use_effect_with(props.is_wrong, move |_| {
            if let Some(input) = input.cast::<HtmlInputElement>() {
                let _ = input.focus();
                input.select();
            }
        });
    }
    let onsubmit = {
        let (input, key, link) = (input.clone(), props.file, props.link.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            if let Some(input) = input.cast::<HtmlInputElement>() {
                source::unlock(&model, key, &link, &input.value());
            }
        })
    };
    html! {
        <form class="token" {onsubmit} data-testid="password">
            <label for="password-input">
                { if props.is_wrong { "The password is wrong. Try again." } else { "Enter the password of this link." } }
            </label>
            <p class="buttons">
                <input id="password-input" ref={input} class="token-input" type="password" autocomplete="off" spellcheck="false"
                    aria-invalid={props.is_wrong.to_string()} data-testid="password-input" />
                <button class="button is-primary" data-testid="password-give">{ "Open" }</button>
            </p>
            <p class="drop-note">{ "The person who sent the link has it. It is not stored." }</p>
        </form>
    }
}
