//! The command palette: every available command by name.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::command::Command;
use super::fuzzy;
use super::help::keys;
use super::registry::live_commands;
use crate::browser::after_next_frame;
use crate::hooks::use_model;
use crate::model::{Action, Model};
use crate::widgets::dialog::Modal;

/// Returns the commands that match what was typed, best first.
fn found(model: &Model, typed: &str) -> Vec<&'static Command> {
    let live = live_commands(model).filter(|command| command.id != "palette");
    if typed.trim().is_empty() {
        return live.collect();
    }
    let mut scored: Vec<_> =
        live.filter_map(|command| fuzzy::score(typed, command.title).map(|score| (score, command))).collect();
    // The sort is stable: equal scores keep the registry's order.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, command)| command).collect()
}

/// The command palette.
#[component]
pub fn CommandPalette() -> Html {
    let model = use_model();
    let typed = use_state_eq(String::new);
    let chosen = use_state_eq(|| 0_usize);
    let commands = found(&model, &typed);
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
        Callback::from(move |command: &'static Command| {
            // The dialog must be closed before the command runs: it restores the focus, which the command may then
            // move.
            model.dispatch(Action::CloseDialog);
            let model = model.clone();
            after_next_frame(move || (command.run)(&model, false));
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
        let (chosen, run, current) = (chosen.clone(), run.clone(), commands.get(at).copied());
        Callback::from(move |event: KeyboardEvent| {
            match event.key().as_str() {
                "ArrowDown" => chosen.set(if at >= last { 0 } else { at + 1 }),
                "ArrowUp" => chosen.set(at.checked_sub(1).unwrap_or(last)),
                "Enter" => {
                    if let Some(command) = current {
                        run.emit(command);
                    }
                }
                _ => return,
            }
            event.prevent_default();
        })
    };
    let rows = commands.iter().enumerate().map(|(i, command)| {
        let (run, command) = (run.clone(), *command);
        let onclick = Callback::from(move |_| run.emit(command));
        html! {
            <li key={command.id} id={row_id(i)} role="option" class="palette-row" aria-selected={(i == at).to_string()}
                {onclick} data-testid="palette-row" data-command={command.id}>
                <span>{ command.title }</span>
                <span class="palette-keys">{ keys(command.chords) }</span>
            </li>
        }
    });
    html! {
        <Modal title="Commands" is_title_hidden={true} {on_close} class="palette" test_id="palette">
            <input class="palette-input" type="text" role="combobox" aria-expanded="true" aria-controls="palette-list"
                aria-activedescendant={row_id(at)} aria-label="Find a command" placeholder="Find a command"
                autocomplete="off" spellcheck="false" value={(*typed).clone()} {oninput} {onkeydown}
                data-autofocus="" data-testid="palette-input" />
            <ul id="palette-list" class="palette-list" role="listbox" aria-label="Commands">{ for rows }</ul>
            if commands.is_empty() {
                <p class="palette-none">{ "No matching command" }</p>
            }
        </Modal>
    }
}

fn row_id(i: usize) -> String {
    format!("palette-row-{i}")
}

fn nearest() -> web_sys::ScrollIntoViewOptions {
    let options = web_sys::ScrollIntoViewOptions::new();
    options.set_block(web_sys::ScrollLogicalPosition::Nearest);
    options
}
