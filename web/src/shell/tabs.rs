//! The tab bar.

use trace::units::Count;
use web_sys::{ScrollIntoViewOptions, ScrollLogicalPosition};
use yew::prelude::*;

use super::detail_bar::detail_note;
use crate::browser::{document, use_effect_with};
use crate::hooks::ModelHandle;
use crate::model::{Action, Side, Split, Tab};
use crate::views::findings::count;
use crate::views::{TABS, TabTitle, first_side, panel_id};
use crate::widgets::icon::{Symbol, icon};

/// Scrolls the selected tab into view where not all tabs fit.
#[hook]
pub fn use_tab_in_view(tab: Tab) {
    use_effect_with(tab, |tab| {
        if let Some(button) = document().get_element_by_id(&id(*tab)) {
            let options = ScrollIntoViewOptions::new();
            options.set_block(ScrollLogicalPosition::Nearest);
            options.set_inline(ScrollLogicalPosition::Center);
            button.scroll_into_view_with_scroll_into_view_options(&options);
        }
    });
}

/// Renders the tabs and the button of the details pane.
pub fn tabs(model: &ModelHandle) -> Html {
    let onkeydown = {
        let model = model.clone();
        Callback::from(move |event: KeyboardEvent| {
            let step = match event.key().as_str() {
                "ArrowLeft" => TABS.len() - 1,
                "ArrowRight" => 1,
                _ => return,
            };
            event.prevent_default();
            let at = TABS.iter().position(|view| view.tab == model.now().view.tab).unwrap_or(0);
            if let Some(view) = TABS.get((at + step) % TABS.len()) {
                model.dispatch(Action::SetTab(view.tab));
                crate::browser::focus(&id(view.tab));
            }
        })
    };
    let is_open = model.is_details_open;
    let on_details = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::SetDetailsOpen(!is_open)))
    };
    let label = if is_open { "Hide details (I)" } else { "Show details (I)" };
    html! {
        <div class="tabs">
            <div class="tab-list" role="tablist" aria-label="Views" {onkeydown}>
                { for TABS.iter().map(|view| button(model, view)) }
            </div>
            { detail_note(model) }
            { split_buttons(model) }
            <button type="button" class="icon-button details-toggle" aria-pressed={is_open.to_string()} aria-label={label} title={label} onclick={on_details} data-testid="details-toggle">
                { icon(Symbol::PaneRight) }
            </button>
        </div>
    }
}

/// Renders the buttons of a second view.
fn split_buttons(model: &ModelHandle) -> Html {
    let split = model.view.split;
    let on_split = {
        let model = model.clone();
        Callback::from(move |_| {
            let split = match model.now().view.split {
                Some(_) => None,
                None => Some(model.now().preferences.second(model.now().view.tab, first_side())),
            };
            model.dispatch(Action::SetSplit(split));
        })
    };
    let label = if split.is_some() { "Show one view (\\)" } else { "Show two views (\\)" };
    let is_beside = split.is_none_or(|split| split.side.is_beside());
    let turn = split.map(|split| {
        let label = if is_beside { "Stack the views" } else { "Put the views side by side" };
        let side = turned(split.side);
        let onclick = {
            let model = model.clone();
            Callback::from(move |_| model.dispatch(Action::SetSplit(Some(Split { side, ..split }))))
        };
        html! {
            <button type="button" class="icon-button" aria-label={label} title={label} {onclick} data-testid="split-turn">
                { icon(if is_beside { Symbol::Over } else { Symbol::Beside }) }
            </button>
        }
    });
    html! {
        <span class="split-buttons">
            { turn }
            <button type="button" class="icon-button" aria-pressed={split.is_some().to_string()} aria-label={label} title={label} onclick={on_split} data-testid="split-toggle">
                { icon(if is_beside { Symbol::Beside } else { Symbol::Over }) }
            </button>
        </span>
    }
}

/// Returns the side after turning the split from side by side to stacked, or back. The same view stays first.
pub fn turned(side: Side) -> Side {
    match side {
        Side::Right => Side::Below,
        Side::Below => Side::Right,
        Side::Left => Side::Above,
        Side::Above => Side::Left,
    }
}

fn id(tab: Tab) -> String {
    format!("tab-{}", tab.name())
}

fn button(model: &ModelHandle, view: &TabTitle) -> Html {
    let tab = view.tab;
    let is_selected = model.view.tab == tab;
    let is_other = model.view.split.is_some_and(|split| split.tab == tab);
    let onclick = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::SetTab(tab)))
    };
    let findings = count(model);
    html! {
        <button type="button" key={tab.name()} id={id(tab)} class={classes!("tab", is_other.then_some("is-other"))} role="tab" aria-selected={is_selected.to_string()}
            aria-controls={(is_selected || is_other).then(|| panel_id(tab))} tabindex={if is_selected { "0" } else { "-1" }} {onclick} data-testid={id(tab)}>
            { view.title }
            if tab == Tab::Findings && findings > 0 {
                <span class="tab-count">{ Count(findings as u64).to_string() }</span>
            }
        </button>
    }
}
