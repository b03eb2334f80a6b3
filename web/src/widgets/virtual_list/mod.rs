//! A list of any length, of which only the visible rows are in the page.
//!
//! The rows are in a layer that sticks to the top of the scroller, and a sizer as tall as the whole list gives the
//! scrollbar its length. So scrolling never uncovers an empty stretch.

mod geometry;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

pub use geometry::Geometry;
use wasm_bindgen::JsCast;
use web_sys::{Element, WheelEvent};
use yew::prelude::*;

use super::style::{pixels, set_style};
use crate::browser::{Listener, use_effect_with, use_narrow, use_size};

/// The state that a list needs to render.
#[derive(Clone)]
pub struct VirtualList {
    /// The rows that are at least partly visible.
    pub visible: Range<u32>,
    /// The number of rows that a page key moves by.
    page: u32,
    /// Whether the person has scrolled away from the end.
    pub is_away: bool,
    away: UseStateSetter<bool>,
    /// The row that keys have moved to since the list was rendered.
    moved: Rc<Cell<Option<u32>>>,
    rows: u32,
    scroller: NodeRef,
    sizer: NodeRef,
    layer: NodeRef,
    on_scroll: Callback<Event>,
}

impl VirtualList {
    /// Forgets that the person has scrolled away from the end.
    pub fn stay(&self) {
        self.away.set(false);
    }

    /// Returns the row that keys have moved to since the list was rendered, or `at`.
    pub fn newest(&self, at: Option<u32>) -> Option<u32> {
        self.moved.get().or(at)
    }

    /// Takes note that keys have moved to a row. Of two keys within a frame, the second moves on from there.
    pub fn move_to(&self, row: u32) {
        self.moved.set(Some(row));
    }

    /// Returns the row to which a key moves from row `at`, and takes the key; `None` if it is no key of lists.
    pub fn step(&self, event: &KeyboardEvent, at: Option<u32>) -> Option<u32> {
        let last = self.rows.checked_sub(1)?;
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return None;
        }
        let at = self.newest(at);
        let from = at.unwrap_or(0);
        let row = match event.key().as_str() {
            "ArrowDown" => at.map_or(0, |at| at.saturating_add(1)),
            "ArrowUp" => from.saturating_sub(1),
            "PageDown" => from.saturating_add(self.page),
            "PageUp" => from.saturating_sub(self.page),
            "Home" => 0,
            "End" => last,
            _ => return None,
        };
        event.prevent_default();
        event.stop_propagation();
        let row = row.min(last);
        self.move_to(row);
        Some(row)
    }

    /// Scrolls to the first row.
    pub fn to_top(&self) {
        if let Some(scroller) = self.scroller.cast::<Element>() {
            scroller.set_scroll_top(0);
        }
    }

    /// Renders the scroller around the visible rows. `role` is its ARIA role, such as `rowgroup` or `group`.
    pub fn wrap(&self, role: &'static str, rows: Html) -> Html {
        html! {
            <div class="virtual" ref={self.scroller.clone()} onscroll={self.on_scroll.clone()} tabindex="-1" {role}>
                <div class="virtual-sizer" ref={self.sizer.clone()} role="presentation">
                    <div class="virtual-layer" role="presentation"><div ref={self.layer.clone()} role="presentation">{ rows }</div></div>
                </div>
            </div>
        }
    }
}

/// Tracks the scrolling of a list of `rows` rows. Whenever `reveal` changes, its row is brought into view; in a list that
/// grows (`is_growing`) only until the person scrolls away from the end.
#[hook]
pub fn use_virtual_list(rows: u32, reveal: Option<u32>, is_growing: bool) -> VirtualList {
    let (scroller, sizer, layer) = (use_node_ref(), use_node_ref(), use_node_ref());
    let viewport = use_size(&scroller).height;
    let row = if use_narrow() { Geometry::TALL_ROW } else { Geometry::ROW };
    let geometry = Geometry { rows, row, viewport };
    let wanted = use_state_eq(|| 0.0);
    let top = geometry.clamp(*wanted);
    let is_away = use_state_eq(|| false);
    let away = is_away.setter();
    {
        // A list that grows again shows its end, wherever the person scrolled to before.
        let away = away.clone();
        use_effect_with(is_growing, move |_| away.set(false));
    }
    let reveal = reveal.filter(|_| !(is_growing && *is_away));
    // Where this code put the scrollbar: a scroll event at this position is its own echo.
    let placed = use_mut_ref(|| 0.0_f64);

    {
        let (scroller, sizer, placed) = (scroller.clone(), sizer.clone(), placed.clone());
        use_effect_with((geometry, top), move |&(geometry, top)| {
            set_style(&sizer, "height", &pixels(geometry.scroll_height()));
            if let Some(element) = scroller.cast::<Element>() {
                let place = geometry.scroll_of(top);
                if (f64::from(element.scroll_top()) - place).abs() >= 1.0 {
                    *placed.borrow_mut() = place;
                    element.set_scroll_top(place.round() as i32);
                }
            }
        });
    }
    {
        let layer = layer.clone();
        let offset = top.rem_euclid(row);
        use_effect_with(offset.to_bits(), move |_| {
            set_style(&layer, "transform", &format!("translateY(-{})", pixels(offset)));
        });
    }
    {
        let set = wanted.setter();
        use_effect_with((reveal, viewport > 0.0), move |&(reveal, is_shown)| {
            if let (Some(row), true) = (reveal, is_shown) {
                set.set(geometry.reveal(top, row));
            }
        });
    }

    let on_scroll = {
        let (set, away) = (wanted.setter(), away.clone());
        let placed = placed.clone();
        Callback::from(move |event: Event| {
            let Some(element) = event.target_dyn_into::<Element>() else { return };
            let scroll = f64::from(element.scroll_top());
            let is_echo = (scroll - *placed.borrow()).abs() < 2.0;
            if is_echo && geometry.is_scaled() {
                return;
            }
            if !is_echo {
                away.set(geometry.is_above_end(geometry.top_of(scroll)));
            }
            *placed.borrow_mut() = scroll;
            set.set(geometry.top_of(scroll));
        })
    };

    // In a proportional list the browser would move the scrollbar by a notch's pixels, which stand for thousands of
    // rows.
    let latest = use_mut_ref(|| Rc::new(Cell::new((geometry, top)))).borrow().clone();
    latest.set((geometry, top));
    {
        let (set, away) = (wanted.setter(), away.clone());
        use_effect_with((scroller.clone(), geometry.is_scaled()), move |(scroller, is_scaled)| {
            let mut undo = None;
            if let (Some(element), true) = (scroller.cast::<Element>(), *is_scaled) {
                undo = Some(Listener::new(&element, "wheel", move |event| {
                    let Some(event) = event.dyn_ref::<WheelEvent>() else { return };
                    if event.ctrl_key() || event.delta_y() == 0.0 {
                        return;
                    }
                    event.prevent_default();
                    let (geometry, top) = latest.get();
                    let unit = match event.delta_mode() {
                        WheelEvent::DOM_DELTA_LINE => geometry.row,
                        WheelEvent::DOM_DELTA_PAGE => geometry.viewport,
                        _ => 1.0,
                    };
                    let to = geometry.clamp(top + event.delta_y() * unit);
                    // Several notches may arrive before the next render.
                    latest.set((geometry, to));
                    away.set(geometry.is_above_end(to));
                    set.set(to);
                }));
            }
            move || drop(undo)
        });
    }

    let moved = use_memo((), |()| Cell::new(None));
    moved.set(None);
    VirtualList {
        moved,
        rows,
        visible: geometry.visible(top),
        page: geometry.page(),
        is_away: *is_away,
        away,
        scroller,
        sizer,
        layer,
        on_scroll,
    }
}
