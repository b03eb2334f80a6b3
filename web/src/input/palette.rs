//! The palette: every command by name, and the other jobs that run, where one is watched.

use shared::order::sort_by_key;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::command::Command;
use super::fuzzy;
use super::help::keys;
use super::registry::live_commands;
use crate::browser::{after_next_frame, spawn_local};
use crate::hooks::part::part;
use crate::hooks::{use_effect_with, use_state_eq};
use crate::model::{Action, Model, use_model};
use crate::source::{self, server};
use crate::widgets::dialog::{ModalProps, modal};

/// What can be chosen.
struct Choice {
    title: AttrValue,
    does: Does,
}

/// What a choice does.
#[derive(Clone)]
enum Does {
    Command(&'static Command),
    /// Watches the session of this name on the server.
    Watch(String),
}

/// All that can be chosen now. Other sessions are given by their names on the server and what they are called.
fn choices(model: &Model, others: &[(String, String)]) -> Vec<Choice> {
    let live = live_commands(model).filter(|command| command.id != "palette");
    let commands = live.map(|command| Choice { title: command.title.into(), does: Does::Command(command) });
    let watch = |(id, title): &(String, String)| Choice { title: title.clone().into(), does: Does::Watch(id.clone()) };
    commands.chain(others.iter().map(watch)).collect()
}

/// The choices that fit what was typed, best first.
fn found(choices: Vec<Choice>, typed: &str) -> Vec<Choice> {
    if typed.trim().is_empty() {
        return choices;
    }
    let scored = choices.into_iter().filter_map(|choice| Some((fuzzy::score(typed, &choice.title)?, choice)));
    let mut scored: Vec<_> = scored.collect();
    // Stable: equals stay in their order.
    sort_by_key(&mut scored, |(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, choice)| choice).collect()
}

/// The jobs that run, but the one that is watched.
async fn others(watched: &str) -> Vec<(String, String)> {
    let Ok(answer) = server::get("sessions").await else { return Vec::new() };
    let running = answer.list("sessions").into_iter().filter(|session| session.text("state") == "live");
    let other = running.filter(|session| session.text("id") != watched);
    let named = |session: server::Json| {
        let rank = session.number("rank").map_or_else(String::new, |rank| [" (rank ", &rank.to_string(), ")"].concat());
        (session.text("id"), ["Watch ", &session.text("name"), &rank].concat())
    };
    other.map(named).collect()
}

part!(
    /// The dialog.
    pub fn palette = use_palette
);

#[hook]
fn use_palette() -> Html {
    let model = use_model();
    let typed = use_state_eq(String::new);
    let chosen = use_state_eq(|| 0_usize);
    let running = use_state_eq(Vec::new);
    {
        let (running, watched) = (running.clone(), model.live().map(|live| live.session.clone()));
        use_effect_with((), move |()| {
            // Where none is watched, the start page lists them.
            if let Some(watched) = watched {
                spawn_local(async move { running.set(others(&watched).await) });
            }
        });
    }
    let commands = found(choices(&model, &running), &typed);
    let last = commands.len().saturating_sub(1);
    let at = (*chosen).min(last);

    use_effect_with(at, |at| {
        if let Some(row) = crate::browser::document().get_element_by_id(&row_id(*at)) {
            row.scroll_into_view_with_scroll_into_view_options(&nearest());
        }
    });

    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    let run = {
        let model = model.clone();
        Callback::from(move |does: Does| {
            // Closed first, and quite: the dialog gives the focus back, and the command may move it.
            model.dispatch(Action::CloseDialog);
            let model = model.clone();
            after_next_frame(move || match does {
                Does::Command(command) => (command.run)(&model, false),
                Does::Watch(session) => source::watch(&model, &session),
            });
        })
    };
    let oninput = {
        let (typed, chosen) = (typed.clone(), chosen.clone());
        Callback::from(move |event: InputEvent| {
            if let Some(input) = event.target_dyn_into::<HtmlInputElement>() {
                typed.set(input.value());
                chosen.set(0);
            }
        })
    };
    let onkeydown = {
        let (chosen, run, current) = (chosen.clone(), run.clone(), commands.get(at).map(|choice| choice.does.clone()));
        Callback::from(move |event: KeyboardEvent| {
            match event.key().as_str() {
                "ArrowDown" => chosen.set(if at >= last { 0 } else { at + 1 }),
                "ArrowUp" => chosen.set(at.checked_sub(1).unwrap_or(last)),
                "Enter" => {
                    if let Some(does) = current.clone() {
                        run.emit(does);
                    }
                }
                _ => return,
            }
            event.prevent_default();
        })
    };
    let is_nothing = commands.is_empty();
    let rows = commands.into_iter().enumerate().map(|(i, Choice { title, does })| {
        let (id, chords) = match &does {
            Does::Command(command) => (command.id, command.chords),
            Does::Watch(_) => ("watch", &[][..]),
        };
        let run = run.clone();
        let onclick = Callback::from(move |_| run.emit(does.clone()));
        html! {
            <li key={i} id={row_id(i)} role="option" class="palette-row" aria-selected={(i == at).to_string()}
                {onclick} data-testid="palette-row" data-command={id}>
                <span>{ title }</span>
                <span class="palette-keys">{ keys(chords) }</span>
            </li>
        }
    });
    modal(ModalProps {
        title: "Commands".into(),
        is_title_hidden: true,
        on_close,
        class: "palette".into(),
        test_id: "palette".into(),
        children: html! { <>
            <input class="palette-input" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list"
                aria-activedescendant={row_id(at)} aria-label="Find a command" placeholder="Find a command"
                autocomplete="off" spellcheck="false" value={(*typed).clone()} {oninput} {onkeydown}
                data-autofocus="" data-testid="palette-input" />
            <ul id="palette-list" class="palette-list" role="listbox" aria-label="Commands">{ for rows }</ul>
            if is_nothing {
                <p class="palette-none">{ "No command of that name works here." }</p>
            }
        </> },
    })
}

fn row_id(i: usize) -> String {
    format!("palette-row-{i}")
}

fn nearest() -> web_sys::ScrollIntoViewOptions {
    let options = web_sys::ScrollIntoViewOptions::new();
    options.set_block(web_sys::ScrollLogicalPosition::Nearest);
    options
}
