//! The sessions of the server that the page comes from, on the start page and over a session. Where there is no such server there is no
//! list.

use wasm_bindgen_futures::spawn_local;
use yew::prelude::*;

use super::session_poll::{Listing, Poll};
use super::session_row::{RowProps, session_row, trace_path};
use super::token_form::{TokenProps, token_form};
use crate::hooks::part::part;
use crate::hooks::{use_effect_with, use_state_eq};
use crate::model::{Action, ModelHandle, use_model};
use crate::source::{self, server};
use crate::widgets::copy::{CopyButtonProps, copy_button};
use crate::widgets::dialog::{ModalProps, modal};

/// Sends a job's memory here; the module is the project's own agent.
fn attach_snippet() -> String {
    let origin = crate::browser::window().location().origin().unwrap_or_default();
    [
        "# pip install ./collector/python\nimport vramscope\nvramscope.attach(\"",
        &origin,
        "\")\n\n# Without a GPU, in a shell: vramscope run transformer --to ",
        &origin,
        "\n",
    ]
    .concat()
}

/// The list over a session that is watched, to go on to another one.
pub fn job_dialog(model: &ModelHandle) -> Html {
    modal(ModalProps {
        title: "Jobs".into(),
        is_title_hidden: true,
        on_close: {
            let model = model.clone();
            Callback::from(move |()| model.dispatch(Action::CloseDialog))
        },
        class: "jobs".into(),
        test_id: "jobs".into(),
        children: session_list(),
    })
}

part!(
    /// The list.
    pub fn session_list = use_session_list
);

#[hook]
fn use_session_list() -> Html {
    let model = use_model();
    let listing = use_state_eq(Listing::default);
    let turn = use_state_eq(|| 0_u32);
    let confirming = use_state_eq(String::new);
    {
        let set = listing.setter();
        // Begun anew when a token was typed.
        use_effect_with(*turn, move |_| {
            let poll = Poll::start(set);
            move || drop(poll)
        });
    }
    let on_open = {
        let model = model.clone();
        Callback::from(move |id: String| source::watch(&model, &id))
    };
    let on_ask = {
        let confirming = confirming.clone();
        Callback::from(move |id: String| confirming.set(id))
    };
    let on_delete = {
        let (model, confirming) = (model.clone(), confirming.clone());
        Callback::from(move |id: String| {
            let model = model.clone();
            confirming.set(String::new());
            spawn_local(async move {
                if let Err(failure) = server::delete(&["sessions/", &id].concat()).await {
                    model.dispatch(Action::Notify(failure.sentence()));
                }
            });
        })
    };
    let on_download = {
        let model = model.clone();
        (!server::token().is_empty()).then(|| {
            Callback::from(move |id: String| {
                let model = model.clone();
                spawn_local(async move {
                    if let Err(failure) = server::download(&trace_path(&id), &[&id, ".vramscope"].concat()).await {
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
    let on_token = Callback::from(move |()| turn.set(turn.wrapping_add(1)));
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
            on_download: on_download.clone(),
        })
    });
    match &*listing {
        Listing::Absent => Html::default(),
        Listing::Token { is_wrong } => html! {
            <section class="sessions" aria-labelledby="sessions-title" data-testid="sessions">
                <header><h2 id="sessions-title">{ "Jobs" }</h2></header>
                { token_form(TokenProps { is_wrong: *is_wrong, on_token }) }
            </section>
        },
        Listing::Sessions(_) | Listing::Away(_) => html! {
            <section class="sessions" aria-labelledby="sessions-title" data-testid="sessions">
                <header>
                    <h2 id="sessions-title">{ "Jobs" }</h2>
                    if is_away {
                        <span class="session-bad" role="status" data-testid="sessions-away">{ "The server doesn't answer. This is what it said last." }</span>
                    }
                    <button type="button" class={classes!("button", sessions.is_empty().then_some("is-primary"))} onclick={on_demo} disabled={is_away} data-testid="watch-demo">{ "Watch the live demo" }</button>
                </header>
                if sessions.is_empty() {
                    <div class="sessions-none">
                        <p>{ "No job sends to this server yet. In the job to be watched:" }</p>
                        <div class="snippet">
                            <pre><code>{ attach_snippet() }</code></pre>
                            { copy_button(CopyButtonProps { text: attach_snippet().into(), label: "Copy" }) }
                        </div>
                    </div>
                } else {
                    <ul class="session-list">{ for rows }</ul>
                }
            </section>
        },
    }
}
