//! What a link to a running job opens: a copy of it, or the job itself.

use yew::prelude::*;

use super::{audience, outcome};
use crate::hooks::ModelHandle;
use crate::source::shares;

/// Renders the choice.
pub fn moments(follows: bool, set: &UseStateHandle<bool>) -> Html {
    let choice = |value: bool, id: &'static str, label: &'static str, note: &'static str| {
        let set = set.clone();
        html! {
            <label class="share-moment">
                <input type="radio" name="share-moment" checked={follows == value} onchange={move |_| set.set(value)} data-testid={id} />
                <span>{ label }<span class="quiet">{ note }</span></span>
            </label>
        }
    };
    html! {
        <fieldset class="share-moments">
            <legend class="visually-hidden">{ "What the link opens" }</legend>
            { choice(false, "share-moment", "A copy of the job up to now", "Taken when you share or save it, with everything up to then. It doesn't change afterwards.") }
            { choice(true, "share-follow", "The running job", "Opens the whole run and follows it. Nothing is uploaded.") }
        </fieldset>
    }
}

/// Renders the link to the running job.
pub fn follow(model: &ModelHandle) -> Html {
    let Some(link) = model.live().and_then(|live| model.session_link(live)) else { return Html::default() };
    html! {
        <>
            { outcome::link(&shares::session_address(&link), "Link to the running job") }
            <p class="quiet" data-testid="share-terms">
                { audience::who(false) }{ " It works as long as the server keeps the job's recording. " }{ audience::reach() }
            </p>
        </>
    }
}
