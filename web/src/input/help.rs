//! The help dialog: the keys of all commands that are available now, and the mouse and touch gestures.

use yew::prelude::*;

use super::command::{Chord, Group};
use super::gestures::live_gestures;
use super::registry::live_commands;
use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::widgets::dialog::Modal;

/// The help dialog.
pub fn help_dialog(model: &ModelHandle) -> Html {
    let model = model.clone();
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
    let pointing = live_gestures(&model).map(|of| {
        html! {
            <section class="help-group" key={of.place}>
                <h3>{ of.place }</h3>
                <dl>
                    { for of.rows.iter().map(|gesture| html! {
                        <div class="help-row" key={gesture.title}>
                            <dt>{ for gesture.how.iter().map(|how| html! { <span class="gesture">{ *how }</span> }) }</dt>
                            <dd>{ gesture.title }</dd>
                        </div>
                    }) }
                </dl>
            </section>
        }
    });
    html! {
        <Modal title="Keys and gestures" is_title_hidden={false} {on_close} class="help" test_id="help">
            <div class="help-groups" role="group" aria-label="Commands and gestures" tabindex="0">{ for groups }{ for pointing }</div>
            <p class="help-note">
                { "Shortcuts use physical key positions. Shift moves and zooms faster. " }
                <kbd>{ "Ctrl" }</kbd><kbd>{ "K" }</kbd>{ " finds any command by name." }
            </p>
        </Modal>
    }
}

/// Renders the keys of a command.
pub fn keys(chords: &[Chord]) -> Html {
    chords
        .iter()
        .map(|chord| {
            html! { <span class="chord">{ for chord.caps().into_iter().map(|cap| html! { <kbd>{ cap }</kbd> }) }</span> }
        })
        .collect()
}
