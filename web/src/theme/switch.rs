//! The button that goes from the system's theme to light, to dark, and back.

use yew::prelude::*;

use crate::model::{ThemeChoice, use_model};
use crate::widgets::icon::{Icon, Symbol};

/// The switch.
#[component]
pub fn ThemeSwitch() -> Html {
    let model = use_model();
    let (symbol, label) = match model.theme {
        ThemeChoice::System => (Symbol::System, "Theme: system"),
        ThemeChoice::Light => (Symbol::Sun, "Theme: light"),
        ThemeChoice::Dark => (Symbol::Moon, "Theme: dark"),
    };
    let onclick = Callback::from(move |_| super::choose(&model, model.theme.next()));
    html! {
        <button type="button" class="icon-button" aria-label={label} title={label} {onclick} data-testid="theme-switch">
            <Icon {symbol} />
        </button>
    }
}
