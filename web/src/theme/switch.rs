//! The button that goes from the system's theme to light, to dark, and back.

use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::ThemeChoice;
use crate::widgets::icon::{Symbol, icon};

/// The switch.
pub fn theme_switch(model: &ModelHandle) -> Html {
    let (symbol, label) = match model.theme {
        ThemeChoice::System => (Symbol::System, "Theme: system"),
        ThemeChoice::Light => (Symbol::Sun, "Theme: light"),
        ThemeChoice::Dark => (Symbol::Moon, "Theme: dark"),
    };
    let onclick = {
        let model = model.clone();
        Callback::from(move |_| super::choose(&model, model.now().theme.next()))
    };
    html! {
        <button type="button" class="icon-button" aria-label={label} title={label} {onclick} data-testid="theme-switch">
            { icon(symbol) }
        </button>
    }
}
