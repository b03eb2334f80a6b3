//! How far an upload is, and the link that it becomes.

use trace::decimal::Decimal;
use trace::units::{Bytes, Moment};
use yew::prelude::*;

use super::audience;
use super::doing::Made;
use super::sender::Progress;
use crate::shell::TokenForm;
use crate::source::shares::{Shared, Trouble};
use crate::widgets::copy::CopyButton;

/// The id of the button that cancels.
pub const CANCEL_ID: &str = "share-cancel";
/// The id of the button that copies the link.
pub const COPY_ID: &str = "share-copy";

/// Renders an upload that has not ended.
pub fn progress(progress: &Progress, on_cancel: &Callback<()>, on_continue: &Callback<()>) -> Html {
    let onclick = on_cancel.reform(|_: MouseEvent| ());
    let cancel = html! {
        <button type="button" id={CANCEL_ID} class="button" {onclick} data-testid="share-cancel">{ "Cancel" }</button>
    };
    match progress {
        Progress::Sending { sent, total, bytes_per_second, waiting } => {
            let share = *sent as f64 / (*total).max(1) as f64;
            let percent = format!("{} %", Decimal::of(share * 100.0, 0));
            let rate = match bytes_per_second {
                rate if *rate > 0.0 => format!("{} MB/s", Decimal::of(rate / 1e6, if *rate < 1e7 { 1 } else { 0 })),
                _ => String::new(),
            };
            html! {
                <div class="share-progress" data-testid="share-progress">
                    <progress max="1" value={Decimal::of(share, 3).to_string()} aria-label="Uploading" />
                    <p class="share-progress-line" aria-live="polite">
                        <span>{ if sent == total && *total > 0 { "Checking" } else { "Uploading" } }</span>
                        <span data-testid="share-percent">{ percent }</span>
                        <span>{ format!("{} of {}", Bytes(*sent), Bytes(*total)) }</span>
                        <span data-testid="share-rate">{ rate }</span>
                    </p>
                    if let Some((seconds, why)) = waiting {
                        <p class="share-note" role="status" data-testid="share-waiting">{ format!("{why} Trying again in {seconds} s.") }</p>
                    }
                    <p class="buttons">{ cancel }</p>
                </div>
            }
        }
        Progress::Stopped(Trouble::Token(reason)) => html! {
            <div class="share-progress">
                <TokenForm reason={reason.clone()} on_token={on_continue} />
                <p class="buttons">{ cancel }</p>
            </div>
        },
        // Trying again helps only after something else has changed: a smaller copy, or more room on the server.
        Progress::Stopped(Trouble::Refused(sentence)) => html! {
            <div class="share-progress">
                <p class="share-trouble" role="alert" data-testid="share-trouble">{ sentence.clone() }</p>
                <p class="buttons">
                    <button type="button" id={CANCEL_ID} class="button is-primary" onclick={on_cancel.reform(|_: MouseEvent| ())} data-testid="share-back">{ "Back to the choices" }</button>
                    <button type="button" class="button" onclick={on_continue.reform(|_: MouseEvent| ())} data-testid="share-continue">{ "Try again" }</button>
                </p>
            </div>
        },
        Progress::Stopped(trouble) => html! {
            <div class="share-progress">
                <p class="share-trouble" role="alert" data-testid="share-trouble">{ trouble.sentence() }</p>
                <p class="buttons">
                    <button type="button" class="button is-primary" onclick={on_continue.reform(|_: MouseEvent| ())} data-testid="share-continue">{ "Continue" }</button>
                    { cancel }
                </p>
            </div>
        },
        Progress::Done { .. } => Html::default(),
    }
}

/// Renders a link with its copy button. `what` says what it opens.
pub fn link(address: &str, what: &str) -> Html {
    html! {
        <div class="share-link">
            <input class="share-input" type="text" readonly=true value={address.to_owned()} aria-label={what.to_owned()} data-testid="share-link" />
            <CopyButton text={address.to_owned()} label="Copy link" class="button is-primary" id={COPY_ID} />
            <a class="button" href={address.to_owned()} target="_blank" rel="noopener" data-testid="share-open">{ "Open" }</a>
        </div>
    }
}

/// Renders what the link of an upload opens, for whom, and for how long.
pub fn made(shared: &Shared, made: &Made, is_remembered: bool) -> Html {
    let trace = if shared.name.is_empty() { "the trace".to_owned() } else { format!("“{}”", shared.name) };
    let size = Bytes(shared.bytes);
    let opens = match &*made.lost {
        "" => format!("The link opens {trace} ({size}) with the current view."),
        lost => format!("The link opens {trace} ({size}). {lost}"),
    };
    let password = if shared.has_password { " It asks for the password." } else { "" };
    html! {
        <div class="share-body">
            <p role="status" data-testid="share-made">{ opens }</p>
            { link(&made.address, "Link to the shared trace") }
            <p class="quiet" data-testid="share-terms">
                { audience::who(shared.is_public) }{ password }{ " " }{ expiry(shared.expires_us) }{ " " }{ audience::reach() }
            </p>
            if !is_remembered {
                <p class="share-note">{ "This browser can't remember links, so this one can't be deleted from here." }</p>
            }
        </div>
    }
}

/// Returns when a link expires, as text.
pub fn expiry(expires_us: Option<i64>) -> String {
    match expires_us {
        None => "It never expires.".to_owned(),
        Some(us) => format!("It expires on {}.", Moment::at(us).to_minute()),
    }
}
