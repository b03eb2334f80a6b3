//! The pane at the right, resizable and collapsible.

use trace::decimal::Decimal;
use web_sys::{Element, PointerEvent};
use yew::prelude::*;

use super::sheet::Sheet;
use crate::browser::{use_effect_with, window};
use crate::deferred::{Deferred, Part};
use crate::hooks::use_model_of;
use crate::model::{Action, Parts};
use crate::widgets::style::{pixels, set_style};

/// The initial width in pixels, on a wide page and on a narrow one.
const WIDTH: f64 = 340.0;
const NARROW_WIDTH: f64 = 280.0;
/// A page is narrow below this width.
const NARROW_PAGE: f64 = 1200.0;
/// Minimum width of the pane.
const LEAST: f64 = 240.0;
/// Minimum width of the view beside it.
const VIEW_LEAST: f64 = 480.0;
/// Pixels per arrow key.
const STEP: f64 = 16.0;

/// Returns the initial width.
fn first_width(page: f64) -> f64 {
    fitting(if page < NARROW_PAGE { NARROW_WIDTH } else { WIDTH }, page)
}

/// Returns the width clamped so that both sides have enough.
fn fitting(width: f64, page: f64) -> f64 {
    width.min(page - VIEW_LEAST).max(LEAST)
}

/// Returns the width of the page in pixels.
fn page() -> f64 {
    window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(VIEW_LEAST + WIDTH)
}

/// Properties of the pane, and of the sheet.
#[derive(PartialEq, Properties)]
pub struct DetailsPaneProps {
    /// Whether the contents are rendered, not only the empty pane.
    pub is_filled: bool,
}

/// Renders the details: a pane beside the view, or on a narrow page a sheet below it.
pub fn details_pane(is_narrow: bool, is_filled: bool) -> Html {
    if is_narrow {
        html! { <Sheet {is_filled} /> }
    } else {
        html! { <SidePane {is_filled} /> }
    }
}

/// The pane with its splitter.
#[component]
fn SidePane(props: &DetailsPaneProps) -> Html {
    let is_filled = props.is_filled;
    let model = use_model_of(Parts::REST);
    let node = use_node_ref();
    let width = use_state_eq(|| {
        model.preferences.details_px.map_or_else(|| first_width(page()), |width| fitting(f64::from(width), page()))
    });
    // The width is remembered when the splitter is released.
    let remember = {
        let model = model.clone();
        // Casts of floating point saturate.
        move |width: f64| model.dispatch(Action::SetDetailsWidth(Some(width.round() as u32)))
    };
    {
        let node = node.clone();
        use_effect_with((*width, model.is_details_open), move |(width, _)| set_style(&node, "width", &pixels(*width)));
    }
    if !model.is_details_open {
        return Html::default();
    }
    let onpointerdown = Callback::from(|event: PointerEvent| {
        if let Some(line) = event.target_dyn_into::<Element>() {
            let _ = line.set_pointer_capture(event.pointer_id());
            event.prevent_default();
        }
    });
    let onpointermove = {
        let width = width.clone();
        Callback::from(move |event: PointerEvent| {
            let is_dragged =
                event.target_dyn_into::<Element>().is_some_and(|line| line.has_pointer_capture(event.pointer_id()));
            if is_dragged {
                width.set(fitting(page() - f64::from(event.client_x()), page()));
            }
        })
    };
    let onlostpointercapture = {
        let (width, remember) = (width.clone(), remember.clone());
        Callback::from(move |_: PointerEvent| remember(*width))
    };
    let onkeydown = {
        let width = width.clone();
        Callback::from(move |event: KeyboardEvent| {
            let by = match event.key().as_str() {
                "ArrowLeft" => STEP,
                "ArrowRight" => -STEP,
                _ => return,
            };
            event.prevent_default();
            let wider = fitting(*width + by, page());
            width.set(wider);
            remember(wider);
        })
    };
    let ondblclick = {
        let (width, model) = (width.clone(), model.clone());
        Callback::from(move |_| {
            width.set(first_width(page()));
            model.dispatch(Action::SetDetailsWidth(None));
        })
    };
    html! {
        <>
            <div class="splitter" role="separator" aria-orientation="vertical" aria-label="Details pane width"
                aria-valuenow={Decimal::of(*width, 0).to_string()} aria-valuemin={Decimal::of(LEAST, 0).to_string()} tabindex="0"
                {onpointerdown} {onpointermove} {onlostpointercapture} {onkeydown} {ondblclick} data-testid="details-splitter" />
            <aside class="details-pane" ref={node} aria-label="Details" data-testid="details-pane">
                if is_filled {
                    <Deferred part={Part::Details} />
                }
            </aside>
        </>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pane_leaves_both_sides_enough() {
        assert_eq!((first_width(1440.0), first_width(1024.0)), (WIDTH, NARROW_WIDTH));
        assert_eq!(fitting(300.0, 1440.0), 300.0);
        assert_eq!(fitting(1400.0, 1440.0), 960.0);
        assert_eq!(fitting(10.0, 1440.0), LEAST);
        assert_eq!(fitting(300.0, 600.0), LEAST, "a narrow page still shows it");
    }
}
