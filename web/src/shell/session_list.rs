//! The list of the server's jobs, on the start page and over a session. Empty if the page has no such server.

use std::rc::Rc;

use trace::units::Count;
use wasm_bindgen_futures::spawn_local;
use yew::prelude::*;

use super::session_poll::{Listing, MOST, PAGE, Poll};
use super::session_row::{RowProps, session_row, trace_path};
use super::token_form::TokenForm;
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Action, Parts};
use crate::source;
use crate::source::http;
use crate::source::server::{self, Failure};
use crate::widgets::copy::CopyButton;
use crate::widgets::dialog::Modal;
use crate::widgets::format::counted;

/// Returns the command that runs a script and watches it on this server, and the code by which a job attaches itself.
fn ways() -> [(&'static str, String); 3] {
    let location = crate::browser::window().location();
    let origin = location.origin().unwrap_or_default();
    // The command finds a server on its own machine without an address.
    let is_here = ["localhost", "127.0.0.1", "[::1]"].contains(&&*location.hostname().unwrap_or_default());
    let to = if is_here { String::new() } else { format!(" --to {origin}") };
    [
        ("From the terminal", format!("vramscope watch{to} train.py")),
        (
            "Or from the job itself, once pip install ./collector/python has run",
            format!("import vramscope\nvramscope.attach(\"{origin}\")"),
        ),
        ("Or without a GPU, a simulated job", format!("vramscope run transformer --to {origin}")),
    ]
}

/// Renders the list as a dialog over a session, to switch to another one.
pub fn job_dialog(model: &ModelHandle) -> Html {
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    html! {
        <Modal title="Jobs" is_title_hidden={true} {on_close} class="jobs" test_id="jobs">
            <SessionList />
        </Modal>
    }
}

/// Properties of [`SessionList`].
#[derive(PartialEq, Properties)]
pub struct SessionListProps {
    /// What stands below the jobs, or above them while there are none.
    #[prop_or_default]
    pub children: Html,
}

/// The list of jobs.
#[component]
pub fn SessionList(props: &SessionListProps) -> Html {
    let model = use_model_of(Parts::REST);
    let listing = use_state_eq(Listing::default);
    let limit = use_state_eq(|| PAGE);
    let turn = use_state_eq(|| 0_u32);
    let confirming = use_state_eq(String::new);
    let running = use_mut_ref(|| None::<Poll>);
    {
        let (set, running) = (listing.setter(), Rc::clone(&running));
        // Restarted when a token was entered, or more sessions are to be shown.
        use_effect_with((*turn, *limit), move |&(_, limit)| {
            *running.borrow_mut() = Some(Poll::start(set, limit));
            move || drop(running.take())
        });
    }
    let after = {
        let model = model.clone();
        Callback::from(move |result: Result<(), Failure>| match result {
            Ok(()) => running.borrow().iter().for_each(Poll::hurry),
            Err(failure) => model.dispatch(Action::Notify(failure.sentence())),
        })
    };
    let on_open = {
        let model = model.clone();
        Callback::from(move |id: String| source::watch(&model, &id))
    };
    let on_ask = {
        let confirming = confirming.clone();
        Callback::from(move |id: String| confirming.set(id))
    };
    let on_delete = {
        let (after, confirming) = (after.clone(), confirming.clone());
        Callback::from(move |id: String| {
            let after = after.clone();
            confirming.set(String::new());
            spawn_local(async move { after.emit(server::delete(&format!("sessions/{id}")).await) });
        })
    };
    let on_pin = Callback::from(move |(id, is_pinned): (String, bool)| {
        let after = after.clone();
        spawn_local(async move { after.emit(server::pin(&id, is_pinned).await) });
    });
    let on_download = {
        let model = model.clone();
        (!http::token().is_empty()).then(|| {
            Callback::from(move |id: String| {
                let model = model.clone();
                spawn_local(async move {
                    if let Err(failure) = server::download(&trace_path(&id), &format!("{id}.vramscope")).await {
                        model.dispatch(Action::Notify(failure.sentence()));
                    }
                });
            })
        })
    };
    let on_demo = {
        let model = model.clone();
        Callback::from(move |_| source::watch_demo(&model))
    };
    let on_more = {
        let limit = limit.clone();
        Callback::from(move |_| limit.set((*limit + PAGE).min(MOST)))
    };
    let on_token = Callback::from(move |()| turn.set(turn.wrapping_add(1)));
    let on_leave = {
        let on_token = on_token.clone();
        Callback::from(move |_| {
            http::set_token("");
            on_token.emit(());
        })
    };
    let is_away = matches!(*listing, Listing::Away(_));
    let now_us = (js_sys::Date::now() * 1e3) as i64;
    let sessions = listing.sessions();
    let rows = sessions.iter().map(|session| {
        session_row(&RowProps {
            session: session.clone(),
            now_us,
            is_confirming: *confirming == session.id,
            on_open: on_open.clone(),
            on_ask: on_ask.clone(),
            on_delete: on_delete.clone(),
            on_pin: on_pin.clone(),
            may_manage: listing.may_manage(),
            on_download: on_download.clone(),
        })
    });
    let list = match &*listing {
        Listing::Absent => Html::default(),
        Listing::Token { reason } => html! {
            <section class="sessions" aria-labelledby="sessions-title" data-testid="sessions">
                <header><h2 id="sessions-title">{ "Jobs" }</h2></header>
                <TokenForm reason={reason.clone()} {on_token} />
            </section>
        },
        Listing::Shown(_) | Listing::Away(_) => html! {
            <section class="sessions" aria-labelledby="sessions-title" data-testid="sessions">
                <header>
                    <h2 id="sessions-title">{ "Jobs" }</h2>
                    if is_away {
                        <span class="session-bad" role="status" data-testid="sessions-away">{ "The server is not responding. Showing its last answer." }</span>
                    }
                    <span class="sessions-acts">
                        if !http::token().is_empty() {
                            <button type="button" class="button" onclick={on_leave} title="Forgets the token and asks for another one" data-testid="token-leave">{ "Change token" }</button>
                        }
                        if listing.may("ingest") {
                            <button type="button" class="button" onclick={on_demo} disabled={is_away} data-testid="watch-demo">{ "Watch live demo" }</button>
                        }
                    </span>
                </header>
                if sessions.is_empty() {
                    <div class="sessions-none">
                        <p>{ "No jobs connected yet. To watch one:" }</p>
                        { for ways().into_iter().map(|(title, text)| html! {
                            <div key={title} data-testid="way">
                                <p class="dim">{ title }</p>
                                <div class="snippet">
                                    <pre><code>{ &text }</code></pre>
                                    <CopyButton {text} label="Copy" />
                                </div>
                            </div>
                        }) }
                    </div>
                } else {
                    <ul class="session-list">{ for rows }</ul>
                }
                { extent(&listing, *limit, on_more) }
            </section>
        },
    };
    let is_first = !sessions.is_empty() || matches!(*listing, Listing::Token { .. });
    let (list, beside) =
        (html! { <div key="jobs">{ list }</div> }, html! { <div key="beside">{ props.children.clone() }</div> });
    html! { <>{ for if is_first { [list, beside] } else { [beside, list] } }</> }
}

/// Renders how much of the list is shown, unless it is all of it.
fn extent(listing: &Listing, limit: usize, on_more: Callback<MouseEvent>) -> Html {
    let (Listing::Shown(page) | Listing::Away(page)) = listing else { return Html::default() };
    let (shown, total) = (page.sessions.len() as u64, page.total);
    html! {
        <>
            if page.is_loading {
                <p class="sessions-extent" role="status" data-testid="sessions-loading">{ "The server is still loading stored jobs. More may appear." }</p>
            }
            if shown < total {
                <p class="sessions-extent">
                    <span data-testid="sessions-extent">{ format!("The newest {} of {} are shown.", Count(shown), counted(total, "job")) }</span>
                    if limit < MOST {
                        <button type="button" class="button" onclick={on_more} data-testid="sessions-more">{ "Show more" }</button>
                    }
                </p>
            }
        </>
    }
}
