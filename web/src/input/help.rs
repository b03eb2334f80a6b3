//! The help dialog: every key that does something now.

use yew::prelude::*;

use super::command::{Chord, Group};
use super::registry::live_commands;
use crate::hooks::part::part;
use crate::model::{Action, use_model};
use crate::widgets::dialog::{ModalProps, modal};

part!(
    /// The dialog.
    pub fn help = use_help
);

#[hook]
fn use_help() -> Html {
    let model = use_model();
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    let groups = Group::ALL.into_iter().map(|group| {
        let rows: Vec<Html> = live_commands(&model)
            .filter(|command| command.group == group && !command.chords.is_empty())
            .map(|command| {
                html! {
                    <div class="help-row" key={command.id}>
                        <dt>{ keys(command.chords) }</dt>
                        <dd>{ command.title }</dd>
                    </div>
                }
            })
            .collect();
        if rows.is_empty() {
            return Html::default();
        }
        html! {
            <section class="help-group" key={group.title()}>
                <h3>{ group.title() }</h3>
                <dl>{ rows }</dl>
            </section>
        }
    });
    modal(ModalProps {
        title: "Keyboard shortcuts".into(),
        is_title_hidden: false,
        on_close,
        class: "help".into(),
        test_id: "help".into(),
        children: html! { <>
            <div class="help-groups">{ for groups }</div>
            <p class="help-note">
                { "Shortcuts use physical key positions. Shift moves and zooms faster. " }
                <kbd>{ "Ctrl" }</kbd><kbd>{ "K" }</kbd>{ " finds any command by name." }
            </p>
        </> },
    })
}

/// The keys of a command.
pub fn keys(chords: &[Chord]) -> Html {
    chords
        .iter()
        .map(|chord| {
            html! { <span class="chord">{ for chord.caps().into_iter().map(|cap| html! { <kbd>{ cap }</kbd> }) }</span> }
        })
        .collect()
}
