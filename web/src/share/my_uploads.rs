//! The links that this browser has made: a dialog that opens, copies, extends and deletes them.

use std::cell::Cell;
use std::rc::Rc;

use trace::few_map::FewMap;
use trace::units::{Bytes, Moment};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::{HtmlSelectElement, KeyboardEvent};
use yew::prelude::*;

use super::choices::Lifetime;
use super::outcome::expiry;
use crate::browser::{Listener, after_next_frame, document, focus, use_effect_with};
use crate::hooks::use_model_of;
use crate::model::{Action, Parts};
use crate::shell::TokenForm;
use crate::source::shares::{self, Shared, Sharing, Trouble};
use crate::source::uploads::{self, Upload};
use crate::widgets::copy::CopyButton;
use crate::widgets::dialog::Modal;

/// The id of the button that keeps a link after all.
const KEEP_ID: &str = "upload-keep";
/// Said right after a link was deleted.
const DELETED: &str = "You deleted this link. It no longer opens for anyone.";

/// Returns the id of the button that deletes a link, or removes it from the list.
fn act_id(token: &str) -> String {
    format!("upload-{token}")
}

/// What the server says about a link.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// It is there.
    There,
    /// It is gone, for this reason.
    Gone(String),
    /// Unknown, for this reason.
    Unknown(String),
}

impl Standing {
    fn of(trouble: Trouble) -> Self {
        match trouble {
            // The server asks for the password of a link that it has.
            Trouble::Password => Self::There,
            Trouble::Gone(sentence) => Self::Gone(sentence),
            Trouble::Absent => Self::Gone("The server doesn't have this link.".to_owned()),
            other => Self::Unknown(other.sentence()),
        }
    }
}

/// What is known of the links, by their tokens.
type Known = Rc<FewMap<String, Standing>>;

/// What the dialog knows and changes.
#[derive(Clone)]
struct List {
    uploads: UseStateHandle<Vec<Upload>>,
    known: Rc<std::cell::RefCell<Known>>,
    redraw: Callback<()>,
    failure: UseStateSetter<String>,
}

impl List {
    fn reload(&self) {
        self.uploads.set(uploads::all());
    }

    fn note(&self, token: &str, standing: Standing) {
        Rc::make_mut(&mut self.known.borrow_mut()).insert(token.to_owned(), standing);
        self.redraw.emit(());
    }

    /// Records a link's expiry, and whether it has a password, as the server says.
    fn update(&self, upload: &Upload, shared: &Shared) {
        let Shared { expires_us, has_password, .. } = *shared;
        uploads::remember(Upload { expires_us, has_password, ..upload.clone() });
        self.note(&upload.token, Standing::There);
        self.reload();
    }
}

/// The dialog of the links that this browser has made.
#[component]
pub fn UploadsDialog() -> Html {
    let model = use_model_of(Parts::REST);
    let (confirming, failure) = (use_state_eq(String::new), use_state_eq(String::new));
    let (sharing, turn) = (use_state_eq(|| None::<Result<Sharing, Trouble>>), use_state_eq(|| 0_u32));
    let redraw = use_force_update();
    let list = List {
        uploads: use_state_eq(uploads::all),
        known: use_mut_ref(Known::default),
        redraw: Callback::from(move |()| redraw.force_update()),
        failure: failure.setter(),
    };
    {
        let (list, set) = (list.clone(), sharing.setter());
        use_effect_with(*turn, move |_| {
            let is_wanted = Rc::new(Cell::new(true));
            let wanted = Rc::clone(&is_wanted);
            spawn_local(async move {
                set.set(Some(shares::sharing().await));
                // One after the other: the list may be long.
                for upload in uploads::all() {
                    if !wanted.get() {
                        return;
                    }
                    match shares::describe(&upload.token).await {
                        Ok(shared)
                            if (shared.expires_us, shared.has_password) != (upload.expires_us, upload.has_password) =>
                        {
                            list.update(&upload, &shared);
                        }
                        Ok(_) => list.note(&upload.token, Standing::There),
                        Err(Trouble::Password) if !upload.has_password => {
                            let shared =
                                Shared { expires_us: upload.expires_us, has_password: true, ..Shared::default() };
                            list.update(&upload, &shared);
                        }
                        Err(trouble) => list.note(&upload.token, Standing::of(trouble)),
                    }
                }
            });
            move || is_wanted.set(false)
        });
    }
    // What had the focus is gone when a question appears, and when it is answered.
    let asked = use_mut_ref(String::new);
    use_effect_with((*confirming).clone(), move |token| {
        let before = asked.replace(token.clone());
        if !token.is_empty() {
            // Not the button that deletes: Enter would be pressed once too often.
            focus(KEEP_ID);
        } else if !before.is_empty() {
            focus(&act_id(&before));
        }
    });
    // Esc answers the question, and leaves the dialog open.
    {
        let confirming = confirming.clone();
        use_effect_with(!confirming.is_empty(), move |&is_asking| {
            let listener = is_asking.then(|| {
                Listener::new(&document(), "keydown", move |event| {
                    if event.dyn_ref::<KeyboardEvent>().is_some_and(|key| key.key() == "Escape") {
                        event.prevent_default();
                        confirming.set(String::new());
                    }
                })
            });
            move || drop(listener)
        });
    }
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    let on_changed = {
        let (model, list) = (model.clone(), list.clone());
        Callback::from(move |()| {
            list.reload();
            model.dispatch(Action::SetHasUploads(!uploads::all().is_empty()));
        })
    };
    let on_token = Callback::from(move |()| turn.set(turn.wrapping_add(1)));
    let reason = match &*sharing {
        Some(Err(Trouble::Token(reason))) => Some(reason.clone()),
        _ => None,
    };
    let offered = sharing.as_ref().and_then(|sharing| sharing.as_ref().ok());
    let known = Rc::clone(&list.known.borrow());
    let rows = list.uploads.iter().map(|upload| {
        let is_confirming = *confirming == upload.token;
        row(
            &Row { upload, standing: known.get(&upload.token), sharing: offered, is_confirming },
            &list,
            &confirming,
            &on_changed,
        )
    });
    html! {
        <Modal title="My uploads" is_title_hidden={false} {on_close} class="share" test_id="uploads">
            <div class="share-body">
                if list.uploads.is_empty() {
                    <p data-testid="uploads-none">{ "This browser has shared nothing yet. Open a trace and choose Share." }</p>
                } else {
                    <p class="quiet">
                        { "Links that this browser has made, each with the view that was shared. The list is kept in this browser only." }
                    </p>
                }
                if let Some(reason) = reason { <TokenForm {reason} {on_token} /> }
                <ul class="uploads">{ for rows }</ul>
            </div>
            <p class="share-trouble" role="alert">{ failure.to_string() }</p>
        </Modal>
    }
}

/// A link, and what is known of it.
struct Row<'a> {
    upload: &'a Upload,
    standing: Option<&'a Standing>,
    sharing: Option<&'a Sharing>,
    is_confirming: bool,
}

fn row(row: &Row<'_>, list: &List, confirming: &UseStateHandle<String>, on_changed: &Callback<()>) -> Html {
    let Row { upload, standing, sharing, is_confirming } = *row;
    let Upload { token, name, bytes, created_us, expires_us, .. } = upload;
    let title = if name.is_empty() { "Unnamed trace" } else { name };
    let made = Moment::at(*created_us).to_minute();
    let address = shares::address(token, &upload.view);
    let on_forget = {
        let (token, on_changed) = (token.clone(), on_changed.clone());
        Callback::from(move |_: MouseEvent| {
            uploads::forget(&token);
            on_changed.emit(());
        })
    };
    let confirm = |value: String| {
        let confirming = confirming.clone();
        Callback::from(move |_: MouseEvent| confirming.set(value.clone()))
    };
    let on_delete = delete(upload, list, confirming);
    let acts = match standing {
        Some(Standing::Gone(_)) => html! {
            <button type="button" id={act_id(token)} class="act" onclick={on_forget} data-testid="upload-forget">{ "Remove from the list" }</button>
        },
        _ if is_confirming => html! {
            <>
                <span role="alert">{ "Delete it? The link stops working at once." }</span>
                <button type="button" class="button is-danger" onclick={on_delete} data-testid="upload-delete-yes">{ "Delete" }</button>
                <button type="button" id={KEEP_ID} class="button" onclick={confirm(String::new())} data-testid="upload-delete-no">{ "Keep" }</button>
            </>
        },
        _ => html! {
            <>
                <a class="act" href={address.clone()} target="_blank" rel="noopener" aria-label={format!("Open {title}")} data-testid="upload-open">{ "Open" }</a>
                <CopyButton text={address} label="Copy link" />
                if let Some(sharing) = sharing { { extend(upload, sharing, list) } }
                <button type="button" id={act_id(token)} class="act" onclick={confirm(token.clone())} aria-label={format!("Delete {title}")} data-testid="upload-delete">{ "Delete" }</button>
            </>
        },
    };
    let is_gone = matches!(standing, Some(Standing::Gone(_)));
    html! {
        <li key={token.clone()} class={classes!("upload", is_gone.then_some("is-gone"))} data-testid="upload">
            <div class="upload-name"><b>{ title }</b><span class="quiet">{ Bytes(*bytes).to_string() }</span></div>
            <div class="quiet" data-testid="upload-standing">
                { format!("Shared on {made}. ") }
                if upload.has_password && !is_gone { { "It asks for a password. " } }
                { match standing {
                    None | Some(Standing::There) => expiry(*expires_us),
                    Some(Standing::Gone(sentence) | Standing::Unknown(sentence)) => sentence.clone(),
                } }
            </div>
            <div class="upload-acts">{ acts }</div>
        </li>
    }
}

/// Returns what deletes a link.
fn delete(upload: &Upload, list: &List, confirming: &UseStateHandle<String>) -> Callback<MouseEvent> {
    let (upload, list, confirming) = (upload.clone(), list.clone(), confirming.clone());
    Callback::from(move |_| {
        confirming.set(String::new());
        let (upload, list) = (upload.clone(), list.clone());
        spawn_local(async move {
            match shares::delete(&upload.token, &upload.delete_token).await {
                Ok(()) => {
                    list.note(&upload.token, Standing::Gone(DELETED.to_owned()));
                    after_next_frame(move || focus(&act_id(&upload.token)));
                }
                Err(trouble @ (Trouble::Gone(_) | Trouble::Absent)) => list.note(&upload.token, Standing::of(trouble)),
                Err(trouble) => list.failure.set(trouble.sentence()),
            }
        });
    })
}

/// Renders the choice of another expiry.
fn extend(upload: &Upload, sharing: &Sharing, list: &List) -> Html {
    let (lifetimes, _) = Lifetime::allowed(sharing);
    let options: Vec<Html> =
        lifetimes.iter().map(|lifetime| html! { <option>{ lifetime.label.clone() }</option> }).collect();
    let (upload, list) = (upload.clone(), list.clone());
    let label = format!("Expiry of {}", upload.name);
    let onchange = Callback::from(move |event: Event| {
        let Some(select) = event.target_dyn_into::<HtmlSelectElement>() else { return };
        // The first option is the heading.
        let chosen = usize::try_from(select.selected_index() - 1).ok().and_then(|index| lifetimes.get(index)).cloned();
        select.set_selected_index(0);
        let Some(lifetime) = chosen else { return };
        let (upload, list) = (upload.clone(), list.clone());
        spawn_local(async move {
            match shares::set_expiry(&upload.token, &upload.delete_token, lifetime.seconds).await {
                Ok(shared) => list.update(&upload, &shared),
                Err(trouble @ (Trouble::Gone(_) | Trouble::Absent)) => list.note(&upload.token, Standing::of(trouble)),
                Err(trouble) => list.failure.set(trouble.sentence()),
            }
        });
    });
    html! {
        <select class="toolbar-select" aria-label={label} {onchange} data-testid="upload-extend">
            <option selected=true>{ "Change expiry" }</option>
            { for options }
        </select>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_gone_only_if_the_server_says_it_is() {
        for (trouble, is_gone) in [
            (Trouble::Gone("Deleted yesterday.".to_owned()), true),
            (Trouble::Absent, true),
            (Trouble::Password, false),
            (Trouble::Away, false),
            (Trouble::Token(String::new()), false),
            (Trouble::Busy("Wait.".to_owned()), false),
        ] {
            assert_eq!(matches!(Standing::of(trouble.clone()), Standing::Gone(_)), is_gone, "{trouble:?}");
        }
        assert_eq!(Standing::of(Trouble::Password), Standing::There);
    }
}
