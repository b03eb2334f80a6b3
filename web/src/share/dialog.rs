//! The dialog in which a copy is chosen, shared by link and saved.

use std::rc::Rc;

use shared::query::Summary;
use shared::units::Bytes;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Blob, KeyboardEvent};
use yew::prelude::*;

use super::choices::{Choices, Lifetime, first_name};
use super::leaving::Leaving;
use super::link_form::{LinkForm, name_field};
use super::moved_view::link_to;
use super::origin::{Origin, Source, use_origin};
use super::outcome::{self, CANCEL_ID, LINK_ID};
use super::save::{is_template, save_file, save_page};
use super::sender::{Progress, Sender};
use super::use_copy::{Copy, Wanted, use_copy};
use crate::browser::{Listener, document, focus};
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, Dialog};
use crate::shell::TokenForm;
use crate::source::shares::{self, Sharing, Terms, Trouble};
use crate::source::uploads::{self, Upload};
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

/// What waits for the copy to be packed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Share,
    SaveFile,
    SavePage,
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
    let source = use_origin(&model);
    let choices = use_state_eq(Choices::default);
    let name = use_state_eq(|| model.file().map(|file| first_name(&file.name)).unwrap_or_default());
    let (offer, ask_again) = use_offer(model.place.has_server());
    let has_page = use_has_page(model.place.has_server());
    let terms = use_state_eq(|| None::<Terms>);
    let follows = use_state_eq(|| false);
    let act = use_state_eq(|| None::<Act>);
    let failure = use_state_eq(String::new);
    let progress = use_state_eq(|| None::<Progress>);
    let address = use_state_eq(String::new);
    let sender = use_mut_ref(|| None::<Rc<Sender>>);

    let origin = match &source {
        Source::Ready(origin) => Some(Rc::clone(origin)),
        _ => None,
    };
    let wanted = origin.clone().map(|origin| {
        let part = origin.shown.as_ref().map(|shown| &shown.positions);
        let redaction = choices.redaction(origin.device, part);
        Wanted { origin, name: (*name).clone(), redaction }
    });
    let copy = use_copy(&model, wanted);
    let chosen = match &offer {
        Offer::Ready(sharing) => Some((*terms).clone().unwrap_or_else(|| first_terms(sharing))),
        _ => None,
    };
    let is_sending = matches!(&*progress, Some(progress) if !matches!(progress, Progress::Done { .. }));

    // What the user asked for begins once the copy is packed.
    {
        let doing = Doing {
            model: model.clone(),
            origin: origin.clone(),
            copy: copy.clone(),
            name: (*name).clone(),
            terms: chosen.clone(),
            most_bytes: if let Offer::Ready(sharing) = &offer { sharing.most_bytes } else { 0 },
            is_part: choices.is_part,
            failure: failure.setter(),
            progress: progress.setter(),
            address: address.setter(),
        };
        let (act, sender) = (act.clone(), Rc::clone(&sender));
        use_effect_with((*act, copy.packed.clone()), move |(wanted, packed)| {
            if let (Some(wanted), Some(packed)) = (*wanted, packed) {
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
        Some(Progress::Done { .. }) => LINK_ID,
        Some(_) => CANCEL_ID,
    };
    // What had the focus may be gone. At first, the dialog itself has it.
    let is_first = use_mut_ref(|| true);
    use_effect_with(stage, move |stage| {
        if !is_first.replace(false) {
            focus(stage);
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
    let body = match &*progress {
        Some(Progress::Done { shared, .. }) => done(&model, shared, &address),
        Some(progress) => outcome::progress(progress, &on_cancel, &on_continue),
        None => {
            // The size of a session is that in memory.
            let bytes = model.file().filter(|file| file.live.is_none()).map_or(0, |file| file.size);
            let live = model.live().filter(|live| live.is_open()).map(|live| live.session.clone());
            let session = live.as_ref().filter(|_| *follows).cloned();
            let what = html! {
                <>
                    if live.is_some() { { moments(*follows, &follows) } }
                    if let Some(session) = session {
                        <p>{ "This link opens the running job and follows it. Nothing is uploaded." }</p>
                        { outcome::link(&shares::session_address(&session), "Link to the running job") }
                    } else {
                        { copy_body((&source, bytes), &copy, &choices, &name) }
                        { link_body(&offer, chosen.as_ref(), &terms, &ask_again) }
                    }
                </>
            };
            let has_buttons = !(*follows && live.is_some());
            html! {
                <>
                    <div class="share-body">{ what }</div>
                    <p class="share-trouble" role="alert" data-testid="share-failure">{ failure.to_string() }</p>
                    <footer class="share-foot">
                        if has_buttons {
                            { buttons(&act, matches!(offer, Offer::Ready(_)), has_page, origin.is_some() && copy.contents.is_some()) }
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

/// Renders the choice between a running job's moment and the job itself.
fn moments(follows: bool, set: &UseStateHandle<bool>) -> Html {
    let choice = |value: bool, id: &'static str, label: &'static str| {
        let set = set.clone();
        html! {
            <label class="share-check">
                <input type="radio" name="share-moment" checked={follows == value} onchange={move |_| set.set(value)} data-testid={id} />{ label }
            </label>
        }
    };
    html! {
        <fieldset class="share-moments">
            <legend class="visually-hidden">{ "What the link opens" }</legend>
            { choice(false, "share-moment", "This moment: what the server has now") }
            { choice(true, "share-follow", "From here on: the running job") }
        </fieldset>
    }
}

/// Renders what leaves.
fn copy_body(
    (source, bytes): (&Source, u64),
    copy: &Copy,
    choices: &UseStateHandle<Choices>,
    name: &UseStateHandle<String>,
) -> Html {
    let origin = match source {
        Source::Failed(sentence) => {
            return html! { <p class="share-trouble" role="alert" data-testid="share-no-copy">{ sentence.clone() }</p> };
        }
        Source::Reading(share) => {
            let percent = (share * 100.0).round();
            return html! { <p class="share-wait" role="status">{ format!("Reading the recording: {percent} %") }</p> };
        }
        Source::Ready(origin) => Rc::clone(origin),
    };
    let on_choices = {
        let choices = choices.clone();
        Callback::from(move |new| choices.set(new))
    };
    let on_name = {
        let name = name.clone();
        Callback::from(move |new| name.set(new))
    };
    html! {
        <>
            <Leaving {origin} {bytes} copy={copy.clone()} choices={(**choices).clone()} {on_choices} />
            <div class="share-fields">{ name_field(name, &on_name) }</div>
        </>
    }
}

/// Renders the terms of the link, or why there can't be one.
fn link_body(
    offer: &Offer,
    chosen: Option<&Terms>,
    terms: &UseStateHandle<Option<Terms>>,
    ask_again: &Callback<()>,
) -> Html {
    match (offer, chosen) {
        (Offer::Ready(sharing), Some(chosen)) => {
            let terms = terms.clone();
            let on_terms = Callback::from(move |new| terms.set(Some(new)));
            html! { <div class="share-fields"><LinkForm sharing={sharing.clone()} terms={chosen.clone()} {on_terms} /></div> }
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

/// Renders the buttons. Those that wait for the copy say so.
fn buttons(act: &UseStateHandle<Option<Act>>, can_share: bool, has_page: bool, is_there: bool) -> Html {
    let button = |which: Act, label: &'static str, is_primary: bool, id: &'static str| {
        let is_waiting = **act == Some(which);
        let onclick = {
            let act = act.clone();
            Callback::from(move |_: MouseEvent| act.set(Some(which)))
        };
        let class = classes!("button", is_primary.then_some("is-primary"));
        html! {
            <button type="button" {id} {class} disabled={!is_there || act.is_some()} {onclick} data-testid={id}>
                { if is_waiting { "Preparing" } else { label } }
            </button>
        }
    };
    html! {
        <div class="buttons" role="group" aria-label="Share or save">
            if can_share { { button(Act::Share, "Share by link", true, SHARE_ID) } }
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

/// Renders the link of an upload that is done.
fn done(model: &ModelHandle, shared: &shares::Shared, address: &str) -> Html {
    let who = if shared.is_public {
        "Anyone with the link can open it."
    } else {
        "People who may read on this server can open it."
    };
    let password = if shared.has_password { " It asks for the password." } else { "" };
    html! {
        <>
            <div class="share-body">
                <p role="status">{ format!("The link opens {} ({}) with the current view.", shared.name, Bytes(shared.bytes)) }</p>
                { outcome::link(address, "Link to the shared trace") }
                <p class="quiet" data-testid="share-terms">{ who }{ password }{ " " }{ outcome::expiry(shared.expires_us) }</p>
                if !model.has_uploads {
                    <p class="share-note">{ "This browser can't remember links, so this one can't be deleted from here." }</p>
                }
            </div>
            <footer class="share-foot">{ uploads_button(model) }</footer>
        </>
    }
}

/// Everything that sharing and saving need.
struct Doing {
    model: ModelHandle,
    origin: Option<Rc<Origin>>,
    copy: Copy,
    name: String,
    terms: Option<Terms>,
    most_bytes: u64,
    is_part: bool,
    failure: UseStateSetter<String>,
    progress: UseStateSetter<Option<Progress>>,
    address: UseStateSetter<String>,
}

impl Doing {
    fn begin(self, act: Act, packed: &Blob, sender: &Rc<std::cell::RefCell<Option<Rc<Sender>>>>) {
        self.failure.set(String::new());
        match act {
            Act::SaveFile => self.failure.set(save_file(packed, &self.name).err().unwrap_or_default()),
            Act::SavePage => {
                let (packed, name, failure) = (packed.clone(), self.name, self.failure);
                spawn_local(async move {
                    let saved = match shares::offline_page().await.filter(|page| is_template(page)) {
                        Some(template) => save_page(&template, &packed, &name).await,
                        None => Err("The server did not send the page. Save the trace as a file instead.".to_owned()),
                    };
                    failure.set(saved.err().unwrap_or_default());
                });
            }
            Act::Share => self.share(packed, sender),
        }
    }

    fn share(self, packed: &Blob, sender: &Rc<std::cell::RefCell<Option<Rc<Sender>>>>) {
        let (Some(terms), Some(origin)) = (self.terms, self.origin) else { return };
        if packed.size() > self.most_bytes as f64 {
            let (is, most) = (Bytes(packed.size() as u64), Bytes(self.most_bytes));
            let sentence =
                format!("The copy has {is}, and the server accepts at most {most}. Share a range or fewer devices.");
            return self.failure.set(sentence);
        }
        let summary: &Summary = &origin.summary;
        let device = summary.devices.get(origin.view.device as usize);
        let view = link_to(&origin.view, device, origin.start, self.copy.moved, self.is_part);
        let (model, progress, address) = (self.model, self.progress, self.address);
        let report = Callback::from(move |now: Progress| {
            if let Progress::Done { shared, delete_token } = &now {
                uploads::remember(Upload::of(shared, delete_token.clone()));
                model.dispatch(Action::SetHasUploads(!uploads::all().is_empty()));
                address.set(format!("{}#{view}", shares::address(&shared.token)));
            }
            progress.set(Some(now));
        });
        let new = Sender::new(packed.clone(), Terms { name: self.name, ..terms }, report);
        *sender.borrow_mut() = Some(Rc::clone(&new));
        new.start();
    }
}
