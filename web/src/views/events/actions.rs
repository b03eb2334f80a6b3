//! Toggles that filter the event list by action.

use query::LOST;
use trace::units::Count;
use yew::prelude::*;

use super::glyph::glyph;
use super::lost::lost_glyph;
use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::widgets::chips::toggle;

/// One toggle per action, with its number of events. None pressed means all.
pub fn action_toggles(model: &ModelHandle) -> Html {
    let model = model.clone();
    let shown = model.view.settings.event_actions.clone();
    let mut actions = model.device().map(|device| device.actions.clone()).unwrap_or_default();
    if let Some(losses) = model.device().map(|device| device.losses).filter(|losses| *losses > 0) {
        actions.push((LOST.to_owned(), losses));
    }
    let all = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::SetEventActions(Vec::new())))
    };
    html! {
        <div class="toggles" role="group" aria-label="Actions shown">
            { toggle(shown.is_empty(), &all, "events-all", None, html! { "All" }) }
            { for actions.into_iter().map(|(name, count)| {
                let is_on = shown.contains(&name);
                let on_click = {
                    let (model, shown, name) = (model.clone(), shown.clone(), name.clone());
                    Callback::from(move |()| model.dispatch(Action::SetEventActions(switched(&shown, &name))))
                };
                let label = html! {
                    <>
                        { if name == LOST { lost_glyph() } else { glyph(&name) } }{ name.clone() }
                        <span class="count">{ Count(count.into()).to_string() }</span>
                    </>
                };
                toggle(is_on, &on_click, format!("events-{name}"), None, label)
            }) }
        </div>
    }
}

/// Returns the list with `name` added or removed.
fn switched(shown: &[String], name: &str) -> Vec<String> {
    let mut shown = shown.to_vec();
    match shown.iter().position(|action| action == name) {
        Some(at) => drop(shown.remove(at)),
        None => shown.push(name.to_owned()),
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_switched_on_and_off() {
        let on = switched(&[], "alloc");
        assert_eq!(on, ["alloc"]);
        assert_eq!(switched(&on, "oom"), ["alloc", "oom"]);
        assert!(switched(&on, "alloc").is_empty());
    }
}
