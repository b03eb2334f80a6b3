//! The dialog in which a copy is chosen, shared by link and saved.

use std::rc::Rc;

use trace::units::Bytes;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::{HtmlElement, KeyboardEvent};
use yew::prelude::*;

use super::choices::{Choices, Lifetime, first_name};
use super::doing::{Act, Doing, Made};
use super::draft::{self, Draft};
use super::leaving::{LeavingProps, leaving};
use super::link_form::{BLANK_PASSWORD, LinkFormProps, PASSWORD_ID, is_blank, link_form, name_field};
use super::moment;
use super::origin::{Source, use_origin};
use super::outcome::{self, CANCEL_ID, COPY_ID};
use super::sender::{Progress, Sender};
use super::use_copy::{Copy, Wanted, use_copy};
use crate::browser::{Listener, document, focus, use_effect_with};
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, Dialog, Live};
use crate::shell::TokenForm;
use crate::source;
use crate::source::shares::{self, Sharing, Terms, Trouble};
use crate::widgets::dialog::Modal;

/// What the server offers, as far as it is known.
#[derive(Clone, PartialEq)]
enum Offer {
    /// The server is being asked.
    Asking,
    /// It shares.
    Ready(Sharing),
    /// It doesn't, for this reason.
    Refused(Trouble),
}

/// The id of the button that shares.
const SHARE_ID: &str = "share-go";

/// Said where links can't be had: the page has no server, its server shares nothing, or another site frames the page.
const NO_SERVER: &str =
    "A link needs a server that shares traces, and this page has no such server. Save the trace as a file instead.";

/// Asks what the server offers. The second value asks again.
#[hook]
fn use_offer(has_server: bool) -> (Offer, Callback<()>) {
    let (offer, turn) = (use_state_eq(|| Offer::Asking), use_state_eq(|| 0_u32));
    let set = offer.setter();
    use_effect_with(*turn, move |_| {
        if !has_server {
            return set.set(Offer::Refused(Trouble::Absent));
        }
        spawn_local(async move { set.set(shares::sharing().await.map_or_else(Offer::Refused, Offer::Ready)) });
    });
    ((*offer).clone(), Callback::from(move |()| turn.set(turn.wrapping_add(1))))
}

/// Returns whether the server has the page as a single file.
#[hook]
fn use_has_page(has_server: bool) -> bool {
    let found = use_state_eq(|| false);
    let set = found.setter();
    use_effect_with((), move |()| {
        if has_server {
            spawn_local(async move { set.set(shares::has_offline_page().await) });
        }
    });
    *found
}

/// The dialog that shares the shown trace.
#[component]
pub fn ShareDialog() -> Html {
    let model = use_model();
    let turn = use_state_eq(|| 0_u32);
    let source = use_origin(&model, *turn);
    let draft = use_mut_ref(|| draft::of(model.current)).borrow().clone();
    let choices = use_state_eq(|| draft.choices);
    let first = || model.file().map(|file| first_name(&file.name)).unwrap_or_default();
    // What the field for the name shows, and the name that the copy has: what was there when the field was left.
    let typed = use_state_eq(|| draft.name.unwrap_or_else(first));
    let name = use_state_eq(|| typed.trim().to_owned());
    let (offer, ask_again) = use_offer(model.place.has_server());
    let has_page = use_has_page(model.place.has_server());
    let terms = use_state_eq(|| draft.terms);
    let follows = use_state_eq(|| false);
    let act = use_state_eq(|| None::<Act>);
    let (failure, said) = (use_state_eq(String::new), use_state_eq(String::new));
    let progress = use_state_eq(|| None::<Progress>);
    let made = use_state_eq(Made::default);
    let sender = use_mut_ref(|| None::<Rc<Sender>>);

    // A dialog that is closed by mistake loses nothing.
    let kept = Draft { choices: (*choices).clone(), name: Some((*typed).clone()), terms: (*terms).clone() };
    use_effect_with((model.current, kept), |(key, kept)| draft::keep(*key, kept.clone()));
    let origin = match &source {
        Source::Ready(origin) => Some(Rc::clone(origin)),
        _ => None,
    };
    let wanted = origin.clone().map(|origin| {
        let part = origin.shown.as_ref().map(|shown| &shown.positions);
        let redaction = choices.redaction(origin.device, part);
        Wanted { origin, name: (*name).clone(), redaction }
    });
    let copy = use_copy(&model, wanted.clone());
    let chosen = match &offer {
        Offer::Ready(sharing) => Some((*terms).clone().unwrap_or_else(|| first_terms(sharing))),
        _ => None,
    };
    let is_sending = matches!(&*progress, Some(progress) if !matches!(progress, Progress::Done { .. }));

    let live = model.live().filter(|live| live.is_open());

    // What the user asked for begins once the copy is packed: the one of these choices, and of this turn.
    let is_current = origin.as_ref().is_some_and(|origin| origin.turn == *turn);
    let packed = copy.packed_of(wanted.as_ref()).filter(|_| is_current).cloned();
    {
        let doing = origin.clone().map(|origin| Doing {
            model: model.clone(),
            origin,
            moved: copy.moved,
            name: (*name).clone(),
            terms: chosen.clone(),
            is_part: choices.is_part,
            failure: failure.setter(),
            said: said.setter(),
            progress: progress.setter(),
            made: made.setter(),
        });
        let (act, sender) = (act.clone(), Rc::clone(&sender));
        let is_failed = matches!(source, Source::Failed(_));
        use_effect_with((*act, packed.clone(), is_failed), move |(wanted, packed, is_failed)| {
            if *is_failed {
                act.set(None);
            } else if let (Some(wanted), Some(packed), Some(doing)) = (*wanted, packed, doing) {
                act.set(None);
                doing.begin(wanted, packed, &sender);
            }
        });
    }
    // Closing the dialog ends the upload.
    {
        let sender = Rc::clone(&sender);
        use_effect_with((), move |()| {
            move || {
                if let Some(sender) = sender.take() {
                    sender.cancel();
                }
            }
        });
    }
    let stage = match &*progress {
        None => SHARE_ID,
        Some(Progress::Done { .. }) => COPY_ID,
        Some(_) => CANCEL_ID,
    };
    // What had the focus may be gone. At first, the dialog itself has it.
    let is_first = use_mut_ref(|| true);
    use_effect_with(stage, move |stage| {
        if !is_first.replace(false) {
            focus(stage);
        }
    });
    // The first control gets the focus once there is one. It sends nothing: the choices are looked at first.
    use_effect_with(copy.contents.is_some() || live.is_some(), |&has_controls| {
        let on_dialog =
            document().active_element().filter(|active| has_controls && active.matches(".share").unwrap_or(false));
        let first =
            on_dialog.and_then(|dialog| dialog.query_selector(".share-body :is(input, select, button)").ok().flatten());
        if let Some(first) = first.and_then(|first| first.dyn_into::<HtmlElement>().ok()) {
            let _ = first.focus();
        }
    });
    // While an upload runs, no key closes the dialog or opens another.
    use_effect_with(is_sending, |&is_sending| {
        let listener = is_sending.then(|| {
            Listener::new(&document(), "keydown", |event| {
                let is_out = event.dyn_ref::<KeyboardEvent>().is_some_and(|key| {
                    key.key() == "Escape" || (key.code() == "KeyK" && (key.ctrl_key() || key.meta_key()))
                });
                if is_out {
                    event.prevent_default();
                    focus(CANCEL_ID);
                }
            })
        });
        move || drop(listener)
    });

    let on_close = {
        let model = model.clone();
        Callback::from(move |()| if is_sending { focus(CANCEL_ID) } else { model.dispatch(Action::CloseDialog) })
    };
    let on_cancel = {
        let (sender, progress) = (Rc::clone(&sender), progress.clone());
        Callback::from(move |()| {
            if let Some(sender) = sender.take() {
                sender.cancel();
            }
            progress.set(None);
        })
    };
    let on_continue = Callback::from(move |()| {
        if let Some(sender) = &*sender.borrow() {
            sender.start();
        }
    });
    let most_bytes = if let Offer::Ready(sharing) = &offer { Some(sharing.most_bytes) } else { None };
    let too_large = packed.as_ref().zip(most_bytes).map(|(packed, most)| (packed.size() as u64, most));
    let too_large = too_large.filter(|(is, most)| is > most);
    let is_there = origin.is_some() && copy.contents.is_some();
    let is_blank = chosen.as_ref().is_some_and(|terms| is_blank(&terms.password));
    // Asks for the copy to be shared or saved.
    let start = {
        let (act, failure, said, turn) = (act.clone(), failure.clone(), said.clone(), turn.clone());
        let is_live = live.is_some();
        let is_too_large = too_large.is_some();
        Callback::from(move |which: Act| {
            if !is_there || act.is_some() || which == Act::Share && is_too_large {
                return;
            }
            said.set(String::new());
            if which == Act::Share && is_blank {
                return focus(PASSWORD_ID);
            }
            failure.set(String::new());
            if is_live {
                // The copy is of this moment, not of the one when the dialog was opened.
                turn.set(turn.wrapping_add(1));
            }
            act.set(Some(which));
        })
    };
    let body = match &*progress {
        Some(Progress::Done { shared, .. }) => html! {
            <>
                { outcome::made(shared, &made, model.has_uploads) }
                <footer class="share-foot">
                    <button type="button" class="button" onclick={on_close.reform(|_: MouseEvent| ())} data-testid="share-done">{ "Done" }</button>
                    { uploads_button(&model) }
                </footer>
            </>
        },
        Some(progress) => outcome::progress(progress, &on_cancel, &on_continue),
        None => {
            // The size of a session is that in memory.
            let bytes = model.file().filter(|file| file.live.is_none()).map_or(0, |file| file.size);
            let can_share = most_bytes.is_some();
            let on_enter = start.reform(move |()| if can_share { Act::Share } else { Act::SaveFile });
            let again = {
                let turn = turn.clone();
                Callback::from(move |()| turn.set(turn.wrapping_add(1)))
            };
            let follows_job = live.is_some() && *follows;
            html! {
                <>
                    <div class="share-body">
                        if live.is_some() { { moment::moments(*follows, &follows) } }
                        if follows_job {
                            { moment::follow(&model) }
                        } else {
                            { copy_body(&model, (&source, bytes), &copy, &choices, &again) }
                            if is_there { <div class="share-fields">{ name_field(&typed, &name, &on_enter) }</div> }
                            { link_body(&offer, chosen.as_ref(), &terms, &ask_again, &on_enter) }
                        }
                    </div>
                    if let Some((is, most)) = too_large {
                        <p class="share-trouble" role="status" data-testid="share-too-large">
                            { format!("The server takes at most {}, and the copy has {}. Share a range or fewer devices, or save it as a file.", Bytes(most), Bytes(is)) }
                        </p>
                    }
                    <p id="share-failure" class="share-trouble" role="alert" data-testid="share-failure">
                        { if is_blank { BLANK_PASSWORD } else { &**failure } }
                    </p>
                    <p class="share-said" role="status" data-testid="share-said">{ said.to_string() }</p>
                    <footer class="share-foot">
                        if follows_job {
                            <button type="button" class="button" onclick={on_close.reform(|_: MouseEvent| ())} data-testid="share-done">{ "Done" }</button>
                        } else {
                            { buttons(*act, &start, (can_share, too_large.is_none()), has_page, is_there) }
                        }
                        { uploads_button(&model) }
                    </footer>
                </>
            }
        }
    };
    html! {
        <Modal title="Share" is_title_hidden={false} {on_close} class="share" test_id="share">{ body }</Modal>
    }
}

/// Returns the terms that a link begins with.
fn first_terms(sharing: &Sharing) -> Terms {
    let (lifetimes, first) = Lifetime::allowed(sharing);
    Terms { seconds: lifetimes.get(first).and_then(|lifetime| lifetime.seconds), ..Terms::default() }
}

/// Renders what leaves, or how far the trace is.
fn copy_body(
    model: &ModelHandle,
    (source, bytes): (&Source, u64),
    copy: &Copy,
    choices: &UseStateHandle<Choices>,
    again: &Callback<()>,
) -> Html {
    let percent = |share: f64| format!("{} %", (share * 100.0).round() as i64);
    let try_again = |on_again: Callback<MouseEvent>| {
        html! { <button type="button" class="act" onclick={on_again} data-testid="share-again">{ "Try again" }</button> }
    };
    match source {
        Source::Failed(sentence) => html! {
            <p class="share-trouble" role="alert" data-testid="share-no-copy">
                { sentence.clone() }{ " " }
                if model.live().is_some() { { try_again(again.reform(|_| ())) } }
            </p>
        },
        Source::Reading(share) => {
            html! { <p class="share-wait" role="status">{ format!("Reading the recording: {}", percent(*share)) }</p> }
        }
        Source::Downloading(share) => html! {
            <p class="share-wait" data-testid="share-loading">
                { format!("The trace is still loading: {}. It can be shared and saved once all of it is here.", percent(*share)) }
            </p>
        },
        Source::Stopped(key) => {
            let (model, key) = (model.clone(), *key);
            html! {
                <p class="share-trouble" role="alert" data-testid="share-loading">
                    { "The trace can't be shared yet: its download has stopped. " }
                    { try_again(Callback::from(move |_| source::download_on(&model, key))) }
                </p>
            }
        }
        Source::Ready(origin) => {
            let choices = choices.clone();
            let chosen = (*choices).clone();
            let is_growing = model.live().is_some_and(Live::is_open);
            let on_choices = Callback::from(move |new| choices.set(new));
            leaving(&LeavingProps {
                origin: Rc::clone(origin),
                bytes,
                is_growing,
                copy: copy.clone(),
                choices: chosen,
                on_choices,
            })
        }
    }
}

/// Renders the terms of the link, or why there can't be one.
fn link_body(
    offer: &Offer,
    chosen: Option<&Terms>,
    terms: &UseStateHandle<Option<Terms>>,
    ask_again: &Callback<()>,
    on_enter: &Callback<()>,
) -> Html {
    match (offer, chosen) {
        (Offer::Ready(sharing), Some(chosen)) => {
            let terms = terms.clone();
            let on_terms = Callback::from(move |new| terms.set(Some(new)));
            let (sharing, terms) = (sharing.clone(), chosen.clone());
            html! { <div class="share-fields">{ link_form(&LinkFormProps { sharing, terms, on_terms, on_enter: on_enter.clone() }) }</div> }
        }
        (Offer::Refused(Trouble::Token(reason)), _) => {
            html! { <TokenForm reason={reason.clone()} on_token={ask_again} /> }
        }
        (Offer::Refused(Trouble::Absent), _) => {
            html! { <p class="share-note" data-testid="share-no-server">{ NO_SERVER }</p> }
        }
        (Offer::Refused(trouble), _) => html! {
            <p class="share-note" role="alert">
                { trouble.sentence() }{ " " }
                <button type="button" class="act" onclick={ask_again.reform(|_: MouseEvent| ())}>{ "Try again" }</button>
            </p>
        },
        (Offer::Asking | Offer::Ready(_), _) => Html::default(),
    }
}

/// Renders the buttons. The one that waits for the copy says so.
fn buttons(
    act: Option<Act>,
    start: &Callback<Act>,
    (has_link, can_share): (bool, bool),
    has_page: bool,
    is_there: bool,
) -> Html {
    let button = |which: Act, label: &'static str, is_primary: bool, id: &'static str| {
        let class = classes!("button", is_primary.then_some("is-primary"));
        let is_able = is_there && (which != Act::Share || can_share);
        // A button that is disabled while it waits would lose the focus.
        html! {
            <button type="button" {id} {class} disabled={!is_able} aria-disabled={act.is_some().to_string()}
                onclick={start.reform(move |_: MouseEvent| which)} data-testid={id}>
                { if act == Some(which) { "Preparing" } else { label } }
            </button>
        }
    };
    html! {
        <div class="buttons" role="group" aria-label="Share or save">
            if has_link { { button(Act::Share, "Share by link", can_share, SHARE_ID) } }
            { button(Act::SaveFile, "Save as file (.vramscope)", !can_share, "save-file") }
            if has_page { { button(Act::SavePage, "Save as web page (.html)", false, "save-page") } }
        </div>
    }
}

/// Renders the button that opens the list of uploads, if there are any.
fn uploads_button(model: &ModelHandle) -> Html {
    if !model.has_uploads {
        return Html::default();
    }
    let model = model.clone();
    let onclick = Callback::from(move |_: MouseEvent| model.dispatch(Action::OpenDialog(Dialog::Uploads)));
    html! { <button type="button" class="quiet-button" {onclick} data-testid="share-uploads">{ "My uploads" }</button> }
}
