//! The page of a shared trace that can't be opened: what stands in the way, and what to do next.

use std::cmp::Ordering;

use wire::LINK_CHARS;
use yew::prelude::*;

use super::password_form::PasswordForm;
use super::token_form::TokenForm;
use crate::hooks::ModelHandle;
use crate::model::{Action, FileEntry, SharedLink, Trouble};
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
        Some(Trouble::Password { tried, wait_seconds }) => {
            let (key, link, tried, wait_seconds) = (file.key, link.clone(), *tried, *wait_seconds);
            let form = html! { <PasswordForm key={key.0} file={key} {link} {tried} {wait_seconds} /> };
            ("This trace needs a password", form, false)
        }
        Some(Trouble::Incomplete { characters }) => {
            let whole = format!("A link ends with s- and {LINK_CHARS} lower-case letters and digits.");
            let said = match characters.cmp(&LINK_CHARS) {
                Ordering::Less => format!("{whole} This one has {characters}: the end is missing."),
                Ordering::Greater => format!("{whole} This one has {characters}: something was added to it."),
                Ordering::Equal => format!("{whole} This one has others, such as capital letters."),
            };
            let title = if *characters < LINK_CHARS { "This link is not complete" } else { "This link is not right" };
            (title, reason(&said, COPY_ALL), false)
        }
        Some(Trouble::Token) => {
            let reason = if source::http::token().is_empty() { "" } else { WRONG_TOKEN };
            ("This trace is on a server that requires a token", html! { <TokenForm {reason} {on_token} /> }, false)
        }
        // The server says what to do next.
        Some(Trouble::Gone(_)) => ("This link is gone", reason(message, ""), false),
        Some(Trouble::Unknown) => ("There is no such link", reason(UNKNOWN, ASK_FOR_ANOTHER), true),
        Some(Trouble::Other(_)) | None => ("Can't open the shared trace", reason(message, ""), true),
    };
    let is_form = matches!(link.trouble, Some(Trouble::Password { .. } | Trouble::Token));
    html! {
        <main class="stage" data-testid="failed">
            // In a form the error alone is an alert.
            <div class="failed" role={(!is_form).then_some("alert")} data-testid="shared-failed">
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

const WRONG_TOKEN: &str = "The server refused the token. Enter one with the read role.";
const UNKNOWN: &str = "The server knows no trace under this address. Part of the address may be missing.";
const COPY_ALL: &str = "Copy the whole link, up to its last character, and open it again.";
const ASK_FOR_ANOTHER: &str = "Ask the person who sent it for a new link.";

fn reason(message: &str, advice: &'static str) -> Html {
    html! {
        <>
            <p class="failed-message" data-testid="error-message">{ message.to_owned() }</p>
            <p class="failed-note">{ advice }</p>
        </>
    }
}
