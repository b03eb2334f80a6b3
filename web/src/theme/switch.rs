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
        Callback::from(move |_| model.dispatch(Action::SetTheme(model.now().theme.next())))
    };
    html! {
        <button type="button" class="icon-button" aria-label={label} title={label} {onclick} data-testid="theme-switch">
            { icon(symbol) }
        </button>
    }
}
