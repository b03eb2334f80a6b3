//! The details on a narrow page: a sheet at the bottom, whose handle can be dragged, pressed or moved with keys.

use trace::order::Within;
use trace::units::Count;
use web_sys::{Element, HtmlElement, PointerEvent};
use yew::prelude::*;

use super::details_pane::DetailsPaneProps;
use crate::browser::{use_effect_with, window};
use crate::deferred::{Deferred, Part};
use crate::hooks::use_model_of;
use crate::model::{Action, Model, Parts, Selection};
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::style::{pixels, set_style};

/// The id of the part below the handle.
const BODY_ID: &str = "details-body";
/// A pointer that moved less than this many pixels has pressed the handle, not dragged it.
const CLICK_PIXELS: f64 = 6.0;
/// A drag over at least this share of the page's height moves the sheet by at least one height.
const FLICK: f64 = 0.06;

/// How much of the page the sheet covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Height {
    /// Only its handle is visible.
    Closed,
    /// The view above it keeps the larger part.
    Peek,
    /// It covers the view.
    Open,
}

impl Height {
    const ALL: [Self; 3] = [Self::Closed, Self::Peek, Self::Open];

    /// Returns the class that sets the height.
    const fn class(self) -> &'static str {
        match self {
            Self::Closed => "is-closed",
            Self::Peek => "is-peek",
            Self::Open => "is-open",
        }
    }

    /// Returns the share of the page's height; sheet.css uses the same.
    const fn share(self) -> f64 {
        match self {
            Self::Closed => 0.06,
            Self::Peek => 0.4,
            Self::Open => 0.86,
        }
    }

    /// Returns the height that is this many steps further up.
    fn up(self, by: i32) -> Self {
        let at = (self as i32).saturating_add(by).max(0) as usize;
        Self::ALL.get(at).copied().unwrap_or(Self::Open)
    }

    /// Returns the height that is nearest to a share of the page.
    fn nearest(share: f64) -> Self {
        let far = |height: &Self| (height.share() - share).abs();
        Self::ALL.into_iter().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(Self::Peek)
    }

    /// Returns the height after a drag upwards over a share of the page: the nearest one, or the next one after a
    /// flick.
    fn after_drag(self, by: f64) -> Self {
        let nearest = Self::nearest(self.share() + by);
        if nearest != self || by.abs() < FLICK {
            return nearest;
        }
        self.up(if by > 0.0 { 1 } else { -1 })
    }
}

/// A drag of the handle: where it began, and how high the sheet was, both in pixels.
#[derive(Clone, Copy)]
struct Drag {
    from_y: f64,
    height: f64,
    is_moved: bool,
}

/// The sheet.
#[component]
pub fn Sheet(props: &DetailsPaneProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let node = use_node_ref();
    let is_tall = use_state_eq(|| false);
    let drag = use_mut_ref(|| None::<Drag>);
    let is_dragging = use_state_eq(|| false);
    let height = match (model.is_details_open, *is_tall) {
        (false, _) => Height::Closed,
        (true, false) => Height::Peek,
        (true, true) => Height::Open,
    };
    let go = {
        let (model, is_tall) = (model.clone(), is_tall.setter());
        Callback::from(move |to: Height| {
            is_tall.set(to == Height::Open);
            model.dispatch(Action::SetSheetOpen(to != Height::Closed));
        })
    };
    {
        // The sheet opens to describe a new selection.
        let model = model.clone();
        use_effect_with(model.view.selection, move |selection| {
            if *selection != Selection::None {
                model.dispatch(Action::SetSheetOpen(true));
            }
        });
    }
    let onpointerdown = {
        let (node, drag) = (node.clone(), drag.clone());
        Callback::from(move |event: PointerEvent| {
            if event.button() != 0 {
                return;
            }
            if let Some(handle) = event.target_dyn_into::<Element>() {
                let _ = handle.set_pointer_capture(event.pointer_id());
            }
            let height = node.cast::<HtmlElement>().map_or(0.0, |sheet| f64::from(sheet.offset_height()));
            *drag.borrow_mut() = Some(Drag { from_y: f64::from(event.client_y()), height, is_moved: false });
        })
    };
    let onpointermove = {
        let (node, drag, is_dragging) = (node.clone(), drag.clone(), is_dragging.setter());
        Callback::from(move |event: PointerEvent| {
            if event.buttons() == 0 {
                return;
            }
            let mut drag = drag.borrow_mut();
            let Some(drag) = drag.as_mut() else { return };
            let up = drag.from_y - f64::from(event.client_y());
            drag.is_moved |= up.abs() >= CLICK_PIXELS;
            if drag.is_moved {
                is_dragging.set(true);
                set_style(&node, "height", &pixels((drag.height + up).within(0.0, page())));
            }
        })
    };
    let end = {
        let (node, drag, is_dragging, go) = (node.clone(), drag.clone(), is_dragging.setter(), go.clone());
        Callback::from(move |event: PointerEvent| {
            set_style(&node, "height", "");
            is_dragging.set(false);
            let moved = drag.borrow().filter(|drag| drag.is_moved);
            if let Some(moved) = moved.filter(|_| event.type_() == "pointerup") {
                go.emit(height.after_drag((moved.from_y - f64::from(event.client_y())) / page()));
            }
        })
    };
    let onclick = {
        let go = go.clone();
        Callback::from(move |_: MouseEvent| {
            // A drag ends with a click, too.
            if drag.borrow_mut().take().is_some_and(|drag| drag.is_moved) {
                return;
            }
            go.emit(if height == Height::Open { Height::Closed } else { height.up(1) });
        })
    };
    let onkeydown = Callback::from(move |event: KeyboardEvent| {
        let to = match event.key().as_str() {
            "ArrowUp" => height.up(1),
            "ArrowDown" => height.up(-1),
            "Home" => Height::Open,
            "End" => Height::Closed,
            _ => return,
        };
        event.prevent_default();
        go.emit(to);
    });
    let is_open = height != Height::Closed;
    html! {
        <aside class={classes!("details-pane", "details-sheet", height.class(), is_dragging.then_some("is-dragged"))} aria-label="Details" data-testid="details-pane">
            <div class="sheet" ref={node}>
                <button type="button" class="sheet-handle" aria-expanded={is_open.to_string()} aria-controls={BODY_ID}
                    title="Drag, press or use the arrow keys to change the height" {onclick} {onkeydown} {onpointerdown} {onpointermove}
                    onpointerup={end.clone()} onpointercancel={end} data-testid="sheet-handle">
                    <span class="sheet-title">{ "Details" }</span>
                    <span class="sheet-subject">{ subject(&model) }</span>
                    { icon(Symbol::ChevronDown) }
                </button>
                <div id={BODY_ID} class="sheet-body">
                    if props.is_filled && (is_open || *is_dragging) {
                        <Deferred part={Part::Details} />
                    }
                </div>
            </div>
        </aside>
    }
}

/// Returns the subject of the details in a few words.
fn subject(model: &Model) -> String {
    match model.view.selection {
        Selection::None if model.view.extended_range().is_some() => "range".to_owned(),
        Selection::None => format!("event {}", Count(model.view.cursor.into())),
        Selection::Allocation(id) => format!("allocation {}", Count(id.into())),
        Selection::Site(_) => "stack".to_owned(),
        Selection::Line(_) => "call site".to_owned(),
        Selection::Segment(address) => format!("segment {address}"),
        Selection::Class(_) => "group".to_owned(),
    }
}

/// Returns the height of the page in pixels.
fn page() -> f64 {
    window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::Height::{Closed, Open, Peek};
    use super::*;

    #[test]
    fn keys_stop_at_the_ends() {
        assert_eq!((Closed.up(1), Peek.up(1), Open.up(1)), (Peek, Open, Open));
        assert_eq!((Closed.up(-1), Peek.up(-1), Open.up(-1)), (Closed, Closed, Peek));
    }

    #[test]
    fn a_drag_ends_at_the_nearest_height_and_a_flick_at_the_next() {
        assert_eq!(Closed.after_drag(0.3), Peek);
        assert_eq!(Closed.after_drag(0.7), Open);
        assert_eq!(Open.after_drag(-0.8), Closed);
        assert_eq!((Peek.after_drag(0.1), Peek.after_drag(-0.1)), (Open, Closed));
        assert_eq!((Peek.after_drag(0.02), Peek.after_drag(-0.02)), (Peek, Peek));
        assert_eq!((Open.after_drag(0.1), Closed.after_drag(-0.1)), (Open, Closed));
    }

    #[test]
    fn the_handle_names_what_is_described() {
        let mut model = Model::default();
        model.view.cursor = 2_655;
        assert_eq!(subject(&model), "event 2,655");
        model.view.selection = Selection::Allocation(1_303);
        assert_eq!(subject(&model), "allocation 1,303");
    }
}
