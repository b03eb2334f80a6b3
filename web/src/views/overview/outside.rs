//! The memory beside the allocator under the overview: a thin curve for each quantity that was sampled.

use query::{Answer, Axis, OutsideCurve, OverviewQuery, Query, Window};
use yew::prelude::*;

use crate::hooks::{use_answer, use_cursor, use_model_of};
use crate::model::Parts;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::icon::{Symbol, icon};

/// Columns of a curve: enough for a strip, and few enough for the page.
const COLUMNS: u32 = 400;
/// The height of a curve in its own units.
const HEIGHT: u64 = 20;

/// The curves, with a button that shows them. Renders nothing if nothing was sampled.
#[component]
pub fn OutsideCurves() -> Html {
    let model = use_model_of(Parts::PLACE);
    let is_open = use_state_eq(|| false);
    let axis = model.view.axis;
    let is_there = model.device().is_some_and(|device| device.outside > 0);
    let answer =
        use_answer((is_there && *is_open).then_some(Query::Overview(OverviewQuery { axis, columns: COLUMNS })));
    let cursor = use_cursor(&model);
    if !is_there {
        return html! {};
    }
    let at = match cursor.as_deref() {
        Some(Answer::State(state)) if axis == Axis::Time => state.time_us,
        Some(Answer::State(state)) => f64::from(state.position),
        _ => 0.0,
    };
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_| is_open.set(!*is_open))
    };
    html! {
        <section class="outside" aria-label="Memory beside the allocator" data-testid="outside">
            <button type="button" class="quiet-button" aria-expanded={is_open.to_string()} onclick={toggle} data-testid="outside-toggle"
                title="Memory that the job uses and PyTorch's allocator does not hold: its process, pinned host memory, and the rest of the device">
                { icon(Symbol::ChevronDown) }{ "Memory outside PyTorch's allocator" }
            </button>
            if let (true, Some(Answer::Overview(overview))) = (*is_open, answer.as_deref()) {
                { for overview.outside.iter().map(|curve| html! {
                    <div class="outside-curve" key={curve.name.clone()} data-testid="outside-curve">
                        <span class="outside-name">{ label(&curve.name) }<b>{ bytes_text(value_at(curve, overview.window, at)) }</b></span>
                        <svg viewBox={format!("0 0 {} {HEIGHT}", curve.bytes.len())} preserveAspectRatio="none" aria-hidden="true" focusable="false">
                            <path d={path(&curve.bytes)} />
                        </svg>
                    </div>
                }) }
            }
        </section>
    }
}

/// Returns what a quantity is called.
fn label(name: &str) -> &str {
    match name {
        "resident" => "Process memory",
        "pinned" => "Pinned host memory",
        "outside" => "Device, not this allocator",
        "others" => "Other processes",
        other => other,
    }
}

/// Returns the value of a curve at a coordinate.
fn value_at(curve: &OutsideCurve, window: Window, at: f64) -> u64 {
    let columns = curve.bytes.len();
    // Casts of floats saturate.
    let column = ((at - window.start) / window.length().max(1.0) * columns as f64) as usize;
    curve.bytes.get(column.min(columns.saturating_sub(1))).copied().unwrap_or(0)
}

/// Returns the outline of the area under a curve with a step wherever the value changes, relative to the largest value. The
/// outline is open along its base.
fn path(bytes: &[u64]) -> String {
    let most = bytes.iter().copied().max().unwrap_or(0).max(1);
    let mut path = String::new();
    let mut before = None;
    for (x, bytes) in bytes.iter().enumerate() {
        let y = HEIGHT - (u128::from(*bytes) * u128::from(HEIGHT - 1) / u128::from(most)) as u64;
        match before.replace(y) {
            None => path += &format!("M{x} {HEIGHT}V{y}"),
            Some(before) if before != y => path += &format!("H{x}V{y}"),
            Some(_) => {}
        }
    }
    if path.is_empty() { path } else { path + &format!("H{}V{HEIGHT}", bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_step_wherever_it_changes() {
        assert_eq!(path(&[0, 10, 10, 5]), "M0 20V20H1V1H3V11H4V20");
        assert_eq!(path(&[]), "");
        assert_eq!(path(&[u64::MAX]), "M0 20V1H1V20");
    }

    #[test]
    fn the_value_is_that_of_the_cursors_column() {
        let curve = OutsideCurve { name: "pinned".to_owned(), bytes: vec![1, 2, 3, 4].into() };
        let window = Window { start: 0.0, end: 40.0 };
        let got = [-5.0, 0.0, 19.0, 20.0, 39.0, 40.0, f64::NAN].map(|at| value_at(&curve, window, at));
        assert_eq!(got, [1, 1, 2, 3, 4, 4, 1]);
    }
}
