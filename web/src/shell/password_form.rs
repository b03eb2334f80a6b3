//! Asks for the password of a link. It goes to the server and is not kept.

use trace::units::counted;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use crate::browser::{Timeout, use_effect_with};
use crate::hooks::use_model_of;
use crate::model::{FileKey, Parts, SharedLink};
use crate::source;

/// Properties of [`PasswordForm`].
#[derive(PartialEq, Properties)]
pub struct PasswordProps {
    /// The shared trace.
    pub file: FileKey,
    /// Its link.
    pub link: SharedLink,
    /// Passwords that were entered, none of them right.
    pub tried: u32,
    /// Seconds for which the server looks at no further one.
    pub wait_seconds: u32,
}

/// The form for a link's password. The field keeps the focus whatever the answer is.
#[component]
pub fn PasswordForm(props: &PasswordProps) -> Html {
    let model = use_model_of(Parts::REST);
    let input = use_node_ref();
    let left = use_state_eq(|| props.wait_seconds);
    {
        let (input, left) = (input.clone(), left.setter());
        use_effect_with((props.tried, props.wait_seconds), move |(_, wait_seconds)| {
            left.set(*wait_seconds);
            if let Some(input) = input.cast::<HtmlInputElement>() {
                let _ = input.focus();
                input.select();
            }
        });
    }
    {
        let setter = left.setter();
        use_effect_with(*left, move |&left| {
            let tick = (left > 0).then(|| Timeout::new(1_000, move || setter.set(left - 1)));
            move || drop(tick)
        });
    }
    let is_waiting = *left > 0;
    let onsubmit = {
        let (input, key, link) = (input.clone(), props.file, props.link.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            if let Some(input) = input.cast::<HtmlInputElement>().filter(|_| !is_waiting) {
                source::unlock(&model, key, &link, &input.value());
            }
        })
    };
    let is_wrong = props.tried > 0 && props.wait_seconds == 0;
    // It is read out once. Only the button counts.
    let error = if is_wrong {
        Some("The password is wrong. Try again.".to_owned())
    } else if is_waiting {
        let seconds = counted(props.wait_seconds.into(), "second");
        Some(format!("Too many passwords were tried. Wait {seconds}, then try again."))
    } else {
        None
    };
    html! {
        <form class="token" {onsubmit} data-testid="password">
            <label for="password-input">{ "Enter the password of this link." }</label>
            <p class="buttons">
                <input id="password-input" ref={input} class="token-input" type="password" autocomplete="off" spellcheck="false"
                    aria-invalid={is_wrong.to_string()} aria-describedby="password-said" data-testid="password-input" />
                <button class="button is-primary" disabled={is_waiting} data-testid="password-give">
                    { if is_waiting { format!("Wait {} s", *left) } else { "Open".to_owned() } }
                </button>
            </p>
            <div id="password-said" class="password-said">
                if let Some(error) = error {
                    // Another one is a new message, even with the same words.
                    <p key={props.tried} class="form-error" role="alert" data-testid="password-error">{ error }</p>
                } else if props.wait_seconds > 0 {
                    <p role="status">{ "You can try again now." }</p>
                }
            </div>
            <p class="drop-note">{ "The person who sent the link can tell you the password. Vramscope does not keep it." }</p>
        </form>
    }
}
