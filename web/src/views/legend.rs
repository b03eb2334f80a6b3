//! The legend: what the colours of the timeline stand for.

use shared::query::{Class, ColorBy};
use shared::units::Count;
use yew::prelude::*;

use crate::hooks::{use_model, use_palette};
use crate::model::{Action, Selection};
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;

/// Properties of [`Legend`].
#[derive(PartialEq, Properties)]
pub struct LegendProps {
    /// The classes of the picture, in stacking order from the bottom.
    pub classes: Vec<Class>,
}

/// The classes, the largest at the peak first. A click selects one, a second click clears the selection.
#[component]
pub fn Legend(props: &LegendProps) -> Html {
    let model = use_model();
    let palette = use_palette();
    let is_open = use_state_eq(|| true);
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_| is_open.set(!*is_open))
    };
    let title = match model.view.color_by {
        ColorBy::Site => "Call sites",
        ColorBy::Size => "Sizes",
        ColorBy::Stream => "Streams",
        ColorBy::Pool => "Pools",
        ColorBy::Lifetime => "Lifetimes",
        ColorBy::Category => "Categories",
    };
    html! {
        <section class="legend" aria-label={title} data-testid="legend">
            <button type="button" class="legend-head" aria-expanded={is_open.to_string()} onclick={toggle} data-testid="legend-toggle">
                <span class="fold-mark" aria-hidden="true">{ if *is_open { "▾" } else { "▸" } }</span>
                <b>{ title }</b>
                if let Some(device) = model.device() {
                    <span class="legend-unit">
                        { format!("at the peak, event {}", Count(device.peak_position.into())) }
                    </span>
                }
            </button>
            if *is_open {
                <ul class="legend-list">
                    { for ranked(&props.classes).into_iter().map(|(i, class)| {
                        let own = class.stack.map_or(Selection::Class(i), Selection::Site);
                        let is_selected = model.view.selection == own;
                        let model = model.clone();
                        let onclick = Callback::from(move |_| {
                            model.dispatch(Action::Select(if is_selected { Selection::None } else { own }));
                        });
                        html! {
                            <li key={i}>
                                <button type="button" class="legend-row" aria-pressed={is_selected.to_string()} title={class.label.clone()} {onclick} data-testid="legend-row">
                                    { paint_chip(&palette, class.paint) }
                                    <span class="legend-label">{ class.label.clone() }</span>
                                    { bytes_text(class.peak_bytes) }
                                </button>
                            </li>
                        }
                    }) }
                </ul>
            }
        </section>
    }
}

/// Returns the classes with their place in the stack, the largest at the peak first.
pub fn ranked(classes: &[Class]) -> Vec<(u32, &Class)> {
    let mut ranked: Vec<(u32, &Class)> = (0..).zip(classes).collect();
    ranked.sort_by_key(|(_, class)| std::cmp::Reverse(class.peak_bytes));
    ranked
}

#[cfg(test)]
mod tests {
    use shared::query::Paint;

    use super::*;

    #[test]
    fn the_largest_class_leads_and_keeps_its_number() {
        let class =
            |label: &str, peak_bytes| Class { label: label.to_owned(), paint: Paint::OTHER, stack: None, peak_bytes };
        let classes = [class("a", 1), class("b", 5), class("c", 5), class("d", 2)];
        let order: Vec<u32> = ranked(&classes).into_iter().map(|(i, _)| i).collect();
        assert_eq!(order, [1, 2, 3, 0]);
    }
}
