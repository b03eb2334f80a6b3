//! The palette: views, commands, open files, jobs of the server and lines by name.

use query::{Answer, FindQuery, FoundLine, ListStart, Query};
use wasm_bindgen_futures::spawn_local;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::found::{Group, Item, Job, found};
use super::help::keys;
use crate::browser::{after_next_frame, reveal, use_effect_with};
use crate::hooks::{ModelHandle, use_answer, use_model};
use crate::model::{Action, Selection};
use crate::source::json::Json;
use crate::source::{self, server};
use crate::widgets::dialog::Modal;

/// A search term that matches every frame, so that all lines are listed.
const ANY_LINE: &str = "/./";
/// Maximum number of lines to look in; those that requested most come first.
const LINES: u32 = 500;

/// The palette.
#[component]
pub fn CommandPalette() -> Html {
    let model = use_model();
    let typed = use_state_eq(String::new);
    let chosen = use_state_eq(|| 0_usize);
    let jobs = use_state_eq(Vec::<Job>::new);
    {
        let set = jobs.setter();
        use_effect_with(model.place.has_server(), move |has_server| {
            if *has_server {
                spawn_local(async move { set.set(server_jobs().await) });
            }
        });
    }
    let position = model.view.cursor;
    let wants_lines = model.device().is_some_and(|device| device.allocations > 0);
    let answer =
        use_answer(wants_lines.then(|| {
            Query::Find(FindQuery { term: ANY_LINE.to_owned(), position, start: ListStart::At(0), rows: LINES })
        }));
    let groups = found(&model, &typed, &jobs, lines_of(answer.as_deref()));
    let items: Vec<Item> = groups.iter().flat_map(|group| group.items.iter().cloned()).collect();
    let last = items.len().saturating_sub(1);
    let at = (*chosen).min(last);

    use_effect_with(at, |at| reveal(&row_id(*at)));

    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    let run = {
        let model = model.clone();
        Callback::from(move |item: Item| {
            // The dialog must be closed before the command runs: it restores the focus, which the command may then
            // move.
            model.dispatch(Action::CloseDialog);
            let model = model.clone();
            after_next_frame(move || open(&model, &item));
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
        let (chosen, run, current) = (chosen.clone(), run.clone(), items.get(at).cloned());
        let (model, typed, jobs, answer) = (model.clone(), typed.clone(), jobs.clone(), answer.clone());
        Callback::from(move |event: KeyboardEvent| {
            let value = event.target_dyn_into::<HtmlInputElement>().map(|input| input.value());
            // What was typed just now has not been rendered yet.
            let newer = value.filter(|value| *value != *typed).filter(|_| event.key() == "Enter");
            let first = newer.map(|value| {
                let groups = found(&model, &value, &jobs, lines_of(answer.as_deref()));
                groups.into_iter().flat_map(|group| group.items).next()
            });
            let current = first.unwrap_or_else(|| current.clone());
            match event.key().as_str() {
                "ArrowDown" => chosen.set(if at >= last { 0 } else { at + 1 }),
                "ArrowUp" => chosen.set(at.checked_sub(1).unwrap_or(last)),
                "Enter" => current.iter().for_each(|item| run.emit(item.clone())),
                _ => return,
            }
            event.prevent_default();
        })
    };
    let mut number = 0;
    let rows = groups.iter().map(|Group { title, items }| {
        let rows = items.iter().map(|item| {
            let i = number;
            number += 1;
            row(item, i, i == at, &run)
        });
        html! {
            <div role="group" aria-label={*title} key={*title} data-testid="palette-group">
                <div class="palette-head" role="presentation">{ *title }</div>
                { for rows }
            </div>
        }
    });
    html! {
        <Modal title="Find" is_title_hidden={true} {on_close} class="palette" test_id="palette">
            <input class="palette-input" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list"
                aria-activedescendant={row_id(at)} aria-label="Find a view, a command, a file, a job or a line"
                placeholder="Find a view, a command, a file, a job or a line"
                autocomplete="off" spellcheck="false" value={(*typed).clone()} {oninput} {onkeydown}
                data-autofocus="" data-testid="palette-input" />
            <div id="palette-list" class="palette-list" role="listbox" aria-label="Found">{ for rows }</div>
            if items.is_empty() {
                <p class="palette-none">{ "No matching view, command, file, job, line or event" }</p>
            }
        </Modal>
    }
}

fn lines_of(answer: Option<&Answer>) -> &[FoundLine] {
    match answer {
        Some(Answer::Find(found)) => &found.by_line,
        _ => &[],
    }
}

fn row(item: &Item, i: usize, is_chosen: bool, run: &Callback<Item>) -> Html {
    let (run, chosen) = (run.clone(), item.clone());
    let onclick = Callback::from(move |_| run.emit(chosen.clone()));
    let (kind, beside) = match item {
        Item::Command(command) => (command.id, keys(command.chords)),
        Item::File(..) => ("file", Html::default()),
        Item::Recent(_) => ("recent", item.note().into()),
        Item::Job(_) => ("job", item.note().into()),
        Item::Line(_) => ("line", item.note().into()),
        Item::Event(..) => ("event", Html::default()),
    };
    html! {
        <div key={i} id={row_id(i)} role="option" class="palette-row" aria-selected={is_chosen.to_string()}
            {onclick} data-testid="palette-row" data-command={kind}>
            <span class="palette-title">{ item.title().to_owned() }</span>
            <span class="palette-keys">{ beside }</span>
        </div>
    }
}

/// Opens an item: runs the command, shows the file, watches the job, selects the line, or goes to the event.
fn open(model: &ModelHandle, item: &Item) {
    match item {
        Item::Command(command) => (command.run)(model, false),
        Item::File(key, _) => model.dispatch(Action::SelectFile(*key)),
        Item::Recent(file) => source::open_recent(model, &file.id),
        Item::Job(job) => source::watch(model, &job.session),
        Item::Event(number, _) => model.dispatch(Action::SetCursor(*number)),
        Item::Line(line) => {
            model.dispatch(Action::Select(Selection::Line(line.stack)));
            model.dispatch(Action::SetDetailsOpen(true));
        }
    }
}

/// Returns the newest jobs of the server; none if it does not answer.
async fn server_jobs() -> Vec<Job> {
    let Ok(answer) = server::get("sessions?limit=200").await else { return Vec::new() };
    let job = |job: Json| Job {
        session: job.text("id"),
        name: Some(job.text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| job.text("id")),
        note: format!("{} {}", job.text("state"), job.text("host")),
    };
    answer.list("sessions").into_iter().map(job).collect()
}

fn row_id(i: usize) -> String {
    format!("palette-row-{i}")
}
