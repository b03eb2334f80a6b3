//! The button that cycles through the system's theme, light and dark.

use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, ThemeChoice};
use crate::widgets::icon::{Symbol, icon};

/// Renders the button.
pub fn theme_switch(model: &ModelHandle) -> Html {
    let (symbol, label) = match model.theme {
        ThemeChoice::System => (Symbol::System, "Theme: system"),
        ThemeChoice::Light => (Symbol::Sun, "Theme: light"),
        ThemeChoice::Dark => (Symbol::Moon, "Theme: dark"),
    };
    let onclick = {
        let model = model.clone();
        Callback::from(move |_| choose_next(&model))
    };
    html! {
        <button type="button" class="icon-button" aria-label={label} title={label} {onclick} data-testid="theme-switch">
            { icon(symbol) }
        </button>
    }
}

/// Chooses the next theme, in the order of the switch.
pub fn choose_next(model: &ModelHandle) {
    model.dispatch(Action::SetTheme(model.now().theme.next()));
}

/// Returns the label of a menu row that chooses the theme after this one.
pub const fn next_label(theme: ThemeChoice) -> &'static str {
    match theme.next() {
        ThemeChoice::System => "Use the system's theme",
        ThemeChoice::Light => "Use the light theme",
        ThemeChoice::Dark => "Use the dark theme",
    }
}
