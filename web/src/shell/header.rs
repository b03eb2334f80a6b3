//! The header of the page.

use yew::prelude::*;

use super::device_menu::device_menu;
use super::file_menu::file_menu;
use crate::browser::focus_view;
use crate::hooks::ModelHandle;
use crate::model::{Action, Dialog, Model, Phase};
use crate::theme::{choose_next, next_label, theme_switch};
use crate::views::controls::sends;
use crate::views::search::SearchBox;
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::menu::Menu;

/// Renders the menus of files and devices, the search box, and the page's own buttons.
pub fn header(model: &ModelHandle) -> Html {
    let is_ready = model.shared_summary().is_some();
    let on_help = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::OpenDialog(Dialog::Help)))
    };
    let on_share = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::OpenDialog(Dialog::Share)))
    };
    let skip = Callback::from(|event: MouseEvent| {
        // The fragment of the address describes the view and must stay.
        event.prevent_default();
        focus_view(false);
    });
    let unshared = why_not_shared(model);
    html! {
        <header class="header">
            <a class="skip-link" href="#" onclick={skip}>{ "Skip to the view" }</a>
            if model.files.is_empty() {
                <span class="wordmark">{ "Vramscope" }</span>
            } else {
                { file_menu(model) }
            }
            if let Some(origin) = model.file().and_then(|file| file.origin.as_ref()) {
                <span class="file-origin" title={format!("This trace comes from {origin}")} data-testid="file-origin">{ format!("from {origin}") }</span>
            }
            if is_ready {
                { device_menu(model) }
                <div key={model.current.map_or(0, |key| key.0)} class="header-search" role="search"><SearchBox /></div>
            }
            <div class="header-end">
                <button type="button" class="header-share" aria-haspopup="dialog" title={unshared.unwrap_or("Share… (U)")} disabled={unshared.is_some()}
                    onclick={on_share} data-testid="share-button">{ "Share" }</button>
                <span class={classes!("header-own", is_ready.then_some("is-folded"))}>
                    { theme_switch(model) }
                    <button type="button" class="icon-button" aria-label="Keys and gestures (?)" title="Keys and gestures (?)" onclick={on_help} data-testid="help-button">
                        <span aria-hidden="true">{ "?" }</span>
                    </button>
                </span>
                if is_ready {
                    <span class="header-more">{ more(model) }</span>
                }
            </div>
        </header>
    }
}

/// Renders the menu that replaces the page's own buttons on narrow pages. It also opens the palette, for people without
/// a keyboard.
fn more(model: &ModelHandle) -> Html {
    let theme = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| choose_next(&model))
    };
    let row = |test_id: &'static str, onclick: Callback<MouseEvent>, words: &'static str| {
        html! { <button type="button" class="menu-row" {onclick} data-testid={test_id}>{ words }</button> }
    };
    html! {
        <Menu label={icon(Symbol::More)} name="More" test_id="more-menu">
            { row("more-palette", sends(model, Action::OpenDialog(Dialog::Palette)), "Find a command…") }
            { row("more-theme", theme, next_label(model.theme)) }
            { row("more-help", sends(model, Action::OpenDialog(Dialog::Help)), "Keys and gestures") }
        </Menu>
    }
}

/// Returns why there is nothing to share; `None` if sharing is possible.
fn why_not_shared(model: &Model) -> Option<&'static str> {
    match model.file().map(|file| &file.phase) {
        None => Some("Open a trace to share it"),
        Some(Phase::Loading { .. } | Phase::Away) => Some("It can be shared once it has been read"),
        Some(Phase::Failed { .. }) => Some("This file can't be read, so there is nothing to share"),
        Some(Phase::Sweep(_)) => Some("A sweep has no trace to share. Send the file instead"),
        Some(Phase::Ready { .. }) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{added, after, read, swept};

    #[test]
    fn only_a_trace_is_shared() {
        let why = |model: Model| why_not_shared(&model).is_some();
        assert!(why(after([])) && why(after([added(0, "a")])) && why(after([added(0, "a"), swept(0)])));
        assert!(!why(after([added(0, "a"), read(0, &[1000])])));
    }
}
