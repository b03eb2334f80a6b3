//! The segment map: all segments at the cursor with their blocks, by address, to scale or with one row per segment.

mod ghost;
mod picture;
mod ruler;
mod spot;
mod strip;
pub(super) mod tooltip;
mod walk;

use std::rc::Rc;

use query::{
    Answer, Query, SegmentGroup, SegmentLayout, SegmentOrder, Segments as SegmentsAnswer, SegmentsQuery, Window,
};
use trace::order::Within;
use trace::units::Bytes;
use web_sys::{HtmlElement, KeyboardEvent};
use yew::prelude::*;

use self::ghost::Ghost;
use self::picture::{Hover, MARGIN, Scene, SegmentsPicture, TOP};
use self::strip::Strip;
use self::tooltip::Tooltip;
use self::walk::Toward;
use super::controls::{choice, color_menu, menu, place_tip, sends, use_first_picture};
use super::description::Description;
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, use_answer, use_model_of, use_palette};
use crate::model::{Action, Parts, Selection, Setting, Subject};
use crate::render::canvas::{Canvas, use_canvas};
use crate::render::math::exp2;
use crate::views::chart::listen::{Input, Pointed, use_pointer};
use crate::views::menu_target::use_menu_target;
use crate::widgets::format::counted;
use crate::widgets::style::{pixels, set_style};
use crate::widgets::toolbar::Toolbar;

/// Wheel movement in pixels that doubles or halves the magnification.
const WHEEL_OCTAVE: f64 = 240.0;
/// The factor by which a double click magnifies.
const CLOSER: f32 = 4.0;

/// Returns the stack of the selected line.
const fn line_of(selection: Selection) -> Option<u32> {
    match selection {
        Selection::Line(stack) => Some(stack),
        _ => None,
    }
}

/// Returns the rows to request when the view begins at `scroll`: those in view, and at least half a view above and
/// below.
fn around(scroll: f64, height: f64) -> Window {
    let step = (height / 2.0).max(1.0);
    let first = (scroll / step).floor();
    Window { start: ((first - 1.0) * step).max(0.0), end: (first + 4.0) * step }
}

/// What a screen reader hears of the segment map.
pub const DESCRIPTION: Description = Description {
    question: |_, _| None,
    text: |_, known| {
        let Some(totals) = known.totals else { return String::new() };
        format!(
            "Segment map: {}, {} cached in {}, largest gap {}. ",
            counted(totals.segments.into(), "segment"),
            Bytes(totals.cached),
            counted(totals.gaps.into(), "gap"),
            Bytes(totals.largest_gap),
        )
    },
};

/// The segment map.
#[component]
pub fn Segments() -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let canvas = use_canvas(SegmentsPicture::default);
    let scroll = use_state_eq(|| 0.0);
    let hovered = use_state_eq(|| None::<Hover>);
    let (scroller, spacer, tip) = (use_node_ref(), use_node_ref(), use_node_ref());

    let size = canvas.size();
    let room = (size.height - TOP - MARGIN).max(0.0);
    let width = (size.width - 2.0 * MARGIN).max(0.0);
    let question = (room > 0.0 && width > 0.0).then(|| {
        Query::Segments(SegmentsQuery {
            position: model.view.cursor,
            layout: model.view.settings.segment_layout,
            order: model.view.settings.segment_order,
            group: model.view.settings.segment_group,
            width: width as f32,
            height: room as f32,
            // More than the view on both sides, in steps, so that scrolling shows something at once and rarely requests
            // more.
            visible: around(*scroll, room),
            zoom: model.view.zooms.segments,
            color_by: model.view.settings.color_by,
            filter: model.view.filter.clone(),
            highlight: model.view.highlight.clone(),
            line: line_of(model.view.selection),
        })
    });
    let answer = use_answer(question);
    let map = match answer.as_deref() {
        Some(Answer::Segments(map)) => Some(map),
        _ => None,
    };
    let height = map.map_or(0.0, |map| f64::from(map.height));
    let anchor = use_mut_ref(|| None::<Anchor>);
    use_scroll_height(&scroller, &spacer, height - room, &anchor);
    canvas.change(|picture| {
        picture.scene = answer.clone().map(|answer| Scene {
            answer,
            palette: Rc::clone(&palette),
            scroll: *scroll,
            by_state: !model.view.settings.segments_by_class,
            selection: model.view.selection,
            ghost: model.failure_at_cursor().and_then(Ghost::new),
        });
    });
    use_first_picture(&model, map.is_some() && canvas.is_shown());

    let onscroll = {
        let (scroller, scroll) = (scroller.clone(), scroll.clone());
        Callback::from(move |_: Event| {
            if let Some(element) = scroller.cast::<HtmlElement>() {
                scroll.set(f64::from(element.scroll_top()));
            }
        })
    };
    let handler = PointerHandler {
        model: model.clone(),
        canvas: canvas.clone(),
        hovered: hovered.clone(),
        tooltip: tip.clone(),
        scroller: scroller.clone(),
        anchor,
    };
    use_listeners(&handler);
    let onkeydown = Callback::from(move |event: KeyboardEvent| handler.walk(&event));

    let is_empty = map.is_some_and(|map| map.totals.reserved == 0);
    html! {
        <section class="canvas-view segments" aria-label="Segments">
            { toolbar(&model, map.map(|map| &**map)) }
            <div ref={scroller} class="segments-scroll" {onscroll} {onkeydown} tabindex="0" role="application" aria-roledescription="chart"
                aria-label="Segments and their blocks at the cursor" aria-describedby="text-twin" data-testid="segments-canvas">
                <div ref={canvas.host()} class="canvas-host is-sticky">
                    { canvas.html() }
                    if is_empty {
                        <p class="canvas-empty">{ "Nothing is reserved at the cursor. Move the cursor to where memory is in use." }</p>
                    }
                    <div ref={tip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true">
                        <Tooltip hover={*hovered} />
                    </div>
                </div>
                <div ref={spacer} />
            </div>
            if let Selection::Segment(address) = model.view.selection {
                <Strip {address} />
            }
        </section>
    }
}

fn toolbar(model: &ModelHandle, map: Option<&SegmentsAnswer>) -> Html {
    let layout = model.view.settings.segment_layout;
    let by_class = model.view.settings.segments_by_class;
    let paint = |by_class: bool| sends(model, Action::Set(Setting::SegmentsByClass(by_class)));
    let zoom = model.view.zooms.segments;
    let zoomed = move |factor: f32| sends(model, Action::SetSegmentZoom(zoom * factor));
    html! {
        <Toolbar label="Segments">
            <div class="choices" role="group" aria-label="Layout">
                { choice("layout-scale", "To scale", "All segments at one scale, in address order", layout == SegmentLayout::ToScale, sends(model, Action::Set(Setting::SegmentLayout(SegmentLayout::ToScale)))) }
                { choice("layout-packed", "Packed", "One row per segment, each as wide as the view", layout == SegmentLayout::Packed, sends(model, Action::Set(Setting::SegmentLayout(SegmentLayout::Packed)))) }
            </div>
            { menu("segment-order", "Sort by", &ORDERS, model.view.settings.segment_order, {
                let model = model.clone();
                Callback::from(move |order| model.dispatch(Action::Set(Setting::SegmentOrder(order))))
            }) }
            { menu("segment-group", "Group by", &GROUPS, model.view.settings.segment_group, {
                let model = model.clone();
                Callback::from(move |group| model.dispatch(Action::Set(Setting::SegmentGroup(group))))
            }) }
            <div class="choices" role="group" aria-label="Colours">
                { choice("paint-state", "State", "Colour by state: allocated, waiting, cached or lost to rounding", !by_class, paint(false)) }
                { choice("paint-class", "Timeline colours", "Use the timeline's colours", by_class, paint(true)) }
            </div>
            if by_class {
                { color_menu("segments-color", model) }
            } else {
                { key(model.failure_at_cursor().is_some_and(|failure| failure.nearest_gap.is_some())) }
            }
            <div class="choices" role="group" aria-label="Zoom">
                <button type="button" class="choice" disabled={zoom <= 1.0} title="Zoom out (Ctrl+wheel)" aria-label="Zoom out" onclick={zoomed(0.5)} data-testid="segments-zoom-out">{ "−" }</button>
                <button type="button" class="choice" disabled={zoom >= SegmentsQuery::MOST_ZOOM} title="Zoom in (Ctrl+wheel)" aria-label="Zoom in" onclick={zoomed(2.0)} data-testid="segments-zoom-in">{ "+" }</button>
            </div>
            <span class="toolbar-note" data-testid="segments-note">{ map.map(note).unwrap_or_default() }</span>
        </Toolbar>
    }
}

/// The orders of segments with their names.
const ORDERS: [(SegmentOrder, &str); 4] = [
    (SegmentOrder::Address, "address"),
    (SegmentOrder::Size, "size"),
    (SegmentOrder::Stream, "stream"),
    (SegmentOrder::Free, "free share"),
];
/// The groups of segments with their names.
const GROUPS: [(SegmentGroup, &str); 4] = [
    (SegmentGroup::None, "nothing"),
    (SegmentGroup::Pool, "pool"),
    (SegmentGroup::Stream, "stream"),
    (SegmentGroup::PoolAndStream, "pool and stream"),
];

/// Renders the legend of state colours.
fn key(has_failure: bool) -> Html {
    const STATES: [(&str, &str); 6] = [
        ("allocated", "allocated"),
        ("pending", "waiting"),
        ("cached", "cached"),
        ("rounding", "rounding"),
        ("unmapped", "unmapped"),
        ("pin", "keeps a mostly free segment"),
    ];
    html! {
        <span class="state-key" data-testid="segments-key">
            { for STATES.iter().map(|(class, name)| html! {
                <span class="state-key-item"><span class={classes!("state-swatch", *class)} aria-hidden="true" />{ *name }</span>
            }) }
            if has_failure {
                <span class="state-key-item"><span class="state-swatch failed" aria-hidden="true" />{ "failed request" }</span>
            }
        </span>
    }
}

/// Formats the totals at the cursor in one line.
fn note(map: &SegmentsAnswer) -> String {
    let totals = &map.totals;
    // The most important value comes first: a narrow toolbar cuts off the end.
    format!(
        "largest gap {} · {} cached · {} · {}",
        Bytes(totals.largest_gap),
        Bytes(totals.cached),
        counted(totals.segments.into(), "segment"),
        counted(totals.blocks.into(), "block"),
    )
}

/// The point that stays under the pointer while the magnification changes: a share of the map's height, and its place
/// on the screen.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    share: f64,
    at: f64,
}

/// Sets the scrollbar's range to the map's height, and keeps the anchor under the pointer.
#[hook]
fn use_scroll_height(scroller: &NodeRef, spacer: &NodeRef, more: f64, anchor: &Rc<std::cell::RefCell<Option<Anchor>>>) {
    let (scroller, spacer, anchor) = (scroller.clone(), spacer.clone(), Rc::clone(anchor));
    use_effect_with(more.max(0.0), move |more| {
        set_style(&spacer, "height", &pixels(more.round()));
        if let (Some(anchor), Some(element)) = (anchor.borrow_mut().take(), scroller.cast::<HtmlElement>()) {
            let height = f64::from(element.scroll_height());
            element.set_scroll_top((anchor.share * height - anchor.at).round() as i32);
        }
    });
}

/// Handles what the pointer and the wheel do over the map.
#[derive(Clone)]
struct PointerHandler {
    model: ModelHandle,
    canvas: Canvas<SegmentsPicture>,
    hovered: UseStateHandle<Option<Hover>>,
    tooltip: NodeRef,
    scroller: NodeRef,
    anchor: Rc<std::cell::RefCell<Option<Anchor>>>,
}

#[hook]
fn use_listeners(handler: &PointerHandler) {
    let handler = handler.clone();
    let find = {
        let handler = handler.clone();
        Rc::new(move |client: (i32, i32)| {
            let hover = handler.under(handler.canvas.point((client.0.into(), client.1.into())))?;
            let cursor = handler.model.now().view.cursor;
            Some(match hover.allocation {
                Some(id) => Subject::Selection(Selection::Allocation(id)),
                None => Subject::Segment(cursor, hover.segment.address),
            })
        })
    };
    use_menu_target(&handler.model, &handler.canvas.host(), find);
    use_pointer(move || handler);
}

impl Pointed for PointerHandler {
    fn host(&self) -> NodeRef {
        self.canvas.host()
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.canvas.point(client)
    }

    fn takes_wheel(&self, is_pinch: bool) -> bool {
        is_pinch
    }

    fn input(&self, at: (f64, f64), input: Input<'_>) -> bool {
        match input {
            Input::Click => {
                let hover = self.under(at);
                self.model.dispatch(Action::Select(match hover {
                    Some(Hover { allocation: Some(id), .. }) => Selection::Allocation(id),
                    Some(hover) => Selection::Segment(hover.segment.address),
                    None => Selection::None,
                }));
            }
            // Magnifies around the pointer, or shows everything again.
            Input::Double => {
                let zoom = self.model.now().view.zooms.segments;
                let closer = if zoom <= 1.0 && self.under(at).is_some() { CLOSER } else { 1.0 / zoom };
                self.zoom(closer, at);
            }
            Input::Move { .. } => self.point_at(Some(at)),
            Input::Leave => self.point_at(None),
            Input::Wheel(wheel) => self.zoom(exp2(-wheel.dy / WHEEL_OCTAVE) as f32, at),
            Input::Down { .. } | Input::Up { .. } | Input::Menu(_) => {}
        }
        false
    }
}

impl PointerHandler {
    /// Selects what an arrow key leads to, and scrolls to it. At the end of the map, the key has no effect.
    fn walk(&self, event: &KeyboardEvent) {
        if event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key() {
            return;
        }
        let Some(toward) = Toward::of_key(&event.key()) else { return };
        event.prevent_default();
        event.stop_propagation();
        // The current model, since keys may come faster than renders.
        let selection = self.model.now().view.selection;
        let stop = self.canvas.read(|picture| {
            let scene = picture.scene.as_ref()?;
            walk::step(scene.map()?, selection, toward, scene.scroll as f32)
        });
        let (Some(stop), Some(element)) = (stop, self.scroller.cast::<HtmlElement>()) else { return };
        self.model.dispatch(Action::Select(stop.selection));
        let (above, below) = (f64::from(stop.y.0), f64::from(stop.y.1) + TOP + MARGIN);
        let (first, height) = (f64::from(element.scroll_top()), f64::from(element.client_height()));
        if above < first || below > first + height {
            element.set_scroll_top((above - height / 3.0).max(0.0) as i32);
        }
    }

    fn under(&self, at: (f64, f64)) -> Option<Hover> {
        self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.at(at)))
    }

    fn point_at(&self, at: Option<(f64, f64)>) {
        let hover = at.and_then(|at| self.under(at));
        let id = |hover: Option<Hover>| hover.map(|hover| (hover.allocation, hover.segment.address));
        if self.canvas.read(|picture| id(picture.hover)) != id(hover) {
            self.canvas.change(|picture| picture.hover = hover);
        }
        if let (Some(at), true) = (at, hover.is_some()) {
            place_tip(&self.tooltip, at, self.canvas.size());
        }
        self.hovered.set(hover);
    }

    fn zoom(&self, factor: f32, at: (f64, f64)) {
        let old = self.model.now().view.zooms.segments;
        let new = (old * factor).within(1.0, SegmentsQuery::MOST_ZOOM);
        if let (true, Some(element)) = (new != old, self.scroller.cast::<HtmlElement>()) {
            let height = f64::from(element.scroll_height()).max(1.0);
            let share = (f64::from(element.scroll_top()) + at.1) / height;
            *self.anchor.borrow_mut() = Some(Anchor { share, at: at.1 });
            self.model.dispatch(Action::SetSegmentZoom(new));
        }
    }
}
