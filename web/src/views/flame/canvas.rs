//! The flame graph's canvas, which stays in view while the graph scrolls under it. Callers grow upwards from the function
//! that they call.

use std::rc::Rc;

use query::{Answer, Flame, FlameBox, Paint};
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement};
use yew::prelude::*;

use super::label::label;
use super::layout::{ROW, Tree};
use super::tooltip::Tooltip;
use crate::browser::{Size, place, use_size};
use crate::hooks::{use_model, use_palette};
use crate::model::Subject;
use crate::render::canvas_surface::font_family;
use crate::render::palette::Palette;
use crate::views::menu_target::use_menu_target;
use crate::widgets::style::{pixels, set_style};

const FONT_PX: f64 = 11.0;
/// Boxes narrower than this have no label.
const NAMED_PX: f64 = 24.0;
/// Padding between a box's edge and its label.
const PAD_PX: f64 = 4.0;

/// Properties of [`FlameCanvas`].
#[derive(PartialEq, Properties)]
pub struct FlameCanvasProps {
    /// An [`Answer::Flame`]; `None` before it has come.
    pub answer: Option<Rc<Answer>>,
    /// Its boxes as a tree.
    pub tree: Rc<Tree>,
    /// The boxes of the selected stack, from the root, to be outlined.
    pub marked: Vec<usize>,
    /// The chosen box.
    pub chosen: Option<usize>,
    /// Whether the graph grows upwards.
    #[prop_or_default]
    pub upwards: bool,
    /// Called with the index of a box that was clicked.
    pub on_pick: Callback<usize>,
    /// Called with the index of a box that was chosen with the keyboard.
    pub on_choose: Callback<usize>,
    /// Called with the width in pixels, whenever it changes.
    pub on_width: Callback<f32>,
}

/// The flame graph on a canvas.
#[component]
pub fn FlameCanvas(props: &FlameCanvasProps) -> Html {
    let model = use_model();
    let (scroller, sizer, canvas) = (use_node_ref(), use_node_ref(), use_node_ref());
    let size = use_size(&scroller);
    let Size { width, height, .. } = size;
    let scrolled = use_state_eq(|| 0.0_f64);
    // Where the pointer is. What is there changes with the answer.
    let pointer = use_state_eq(|| None::<(f64, f64)>);
    let palette = use_palette();
    let answer = props.answer.clone();
    let tree = props.tree.clone();
    let (depth, upwards, chosen) = (tree.depth(), props.upwards, props.chosen);
    let content = (depth as f64 * ROW).max(height);
    let pick = {
        let (answer, tree, scroll) = (answer.clone(), tree.clone(), *scrolled);
        move |(x, y): (f64, f64)| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return None };
            if width <= 0.0 || y < 0.0 {
                return None;
            }
            let down = if upwards { content - (y + scroll) } else { y + scroll };
            tree.pick(&flame.boxes, (down.max(0.0) / ROW) as usize, (x / width) as f32)
        }
    };
    let hover = (*pointer).and_then(&pick);

    use_effect_with((width.to_bits(), props.on_width.clone()), move |(_, on_width)| {
        if width > 0.0 {
            on_width.emit(width as f32);
        }
    });
    {
        let (scroller, sizer, canvas) = (scroller.clone(), sizer.clone(), canvas.clone());
        use_effect_with((depth, width.to_bits(), height.to_bits()), move |_| {
            set_style(&sizer, "height", &pixels(content));
            set_style(&canvas, "width", &pixels(width));
            set_style(&canvas, "height", &pixels(height));
            // The root of a graph that grows upwards is at the bottom.
            if let Some(scroller) = scroller.cast::<Element>().filter(|_| upwards) {
                scroller.set_scroll_top(content as i32);
            }
        });
    }
    {
        let (canvas, answer, tree) = (canvas.clone(), answer.clone(), tree.clone());
        let state = (size, scrolled.to_bits(), hover, chosen, props.marked.clone());
        let drawn = (answer.as_ref().map(|answer| Rc::as_ptr(answer).addr()), Rc::as_ptr(&palette).addr());
        use_effect_with((state, drawn), move |((size, scroll, hover, chosen, marked), _)| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return };
            let Some(canvas) = canvas.cast::<HtmlCanvasElement>() else { return };
            let scroll = f64::from_bits(*scroll);
            let view = View { size: *size, scroll, content, upwards, hover: *hover, chosen: *chosen, marked };
            draw(&canvas, flame, &tree, &palette, &view);
        });
    }

    let point = {
        let canvas = canvas.clone();
        move |(x, y): (f64, f64)| {
            let bounds = canvas.cast::<Element>()?.get_bounding_client_rect();
            Some((x - bounds.left(), y - bounds.top()))
        }
    };
    let find = {
        let (point, pick, answer, tree) = (point.clone(), pick.clone(), answer.clone(), props.tree.clone());
        Rc::new(move |at: (i32, i32)| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return None };
            let found = pick(point((at.0.into(), at.1.into()))?)?;
            let FlameBox { name, location, bytes, stack, .. } = flame.boxes.get(found)?.clone();
            // Transforms apply to the callees, and the paths of callers don't lead to boxes among those.
            let path = if upwards { Vec::new() } else { tree.zoom_path(&flame.boxes, found) };
            Some(Subject::Frame { name, location, bytes, stack, path })
        })
    };
    use_menu_target(&model, &canvas, find);
    let onpointermove = {
        let (point, pointer) = (point.clone(), pointer.clone());
        Callback::from(move |event: PointerEvent| pointer.set(point(place(&event))))
    };
    let onpointerleave = {
        let pointer = pointer.clone();
        Callback::from(move |_| pointer.set(None))
    };
    let onclick = {
        let on_pick = props.on_pick.clone();
        Callback::from(move |event: MouseEvent| {
            if let Some(found) = point(place(&event)).and_then(&pick) {
                on_pick.emit(found);
            }
        })
    };
    let onkeydown = {
        let (answer, tree, model) = (answer.clone(), tree, model.clone());
        let (on_pick, on_choose, scroller) = (props.on_pick.clone(), props.on_choose.clone(), scroller.clone());
        Callback::from(move |event: KeyboardEvent| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return };
            if event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key() {
                return;
            }
            // The current model, since keys may come faster than renders.
            let at = match upwards {
                true => chosen.unwrap_or(0),
                false => tree.at_path(&flame.boxes, &model.now().view.flame_box).unwrap_or(0),
            };
            let (inwards, outwards) = if upwards { ("ArrowUp", "ArrowDown") } else { ("ArrowDown", "ArrowUp") };
            let key = event.key();
            let to = match key.as_str() {
                "Enter" => {
                    on_pick.emit(at);
                    Some(at)
                }
                key if key == inwards => tree.children.get(at).and_then(|below| below.first().copied()),
                key if key == outwards => tree.parent.get(at).copied().flatten(),
                "ArrowLeft" => tree.beside(&flame.boxes, at, false),
                "ArrowRight" => tree.beside(&flame.boxes, at, true),
                _ => return,
            };
            event.prevent_default();
            event.stop_propagation();
            if let Some(to) = to.filter(|to| *to != at) {
                on_choose.emit(to);
                let top = flame.boxes.get(to).map_or(0.0, |b| row_top(f64::from(b.depth), content, upwards));
                if let Some(scroller) = scroller.cast::<Element>() {
                    let shown = f64::from(scroller.scroll_top());
                    if top < shown || top + ROW > shown + height {
                        scroller.set_scroll_top((top - height / 2.0) as i32);
                    }
                }
            }
        })
    };
    let onscroll = {
        let (scrolled, pointer) = (scrolled, pointer.clone());
        Callback::from(move |event: Event| {
            if let Some(element) = event.target_dyn_into::<Element>() {
                scrolled.set(f64::from(element.scroll_top()));
                pointer.set(None);
            }
        })
    };

    let tip = match (answer.as_deref(), hover, *pointer) {
        (Some(Answer::Flame(flame)), Some(i), Some((x, y))) => {
            flame.boxes.get(i).cloned().map(|flame_box| (flame_box, flame.total, flame.query.differs, x, y))
        }
        _ => None,
    };
    html! {
        <div class="flame-body">
            <div class="flame-scroll" ref={scroller} {onscroll} {onkeydown} tabindex="0" role="group"
                aria-label="Flame graph: arrow keys choose a box, Enter zooms into it" data-testid="flame-scroll">
                <div class="flame-sizer" ref={sizer}>
                    <canvas ref={canvas} class="flame-canvas" role="img" data-testid="flame-canvas"
                        aria-label="Flame graph. The table view shows the same data for keyboards and screen readers."
                        {onpointermove} {onpointerleave} {onclick} />
                </div>
            </div>
            if let Some((flame_box, total, differs, x, y)) = tip {
                <Tooltip {flame_box} {total} {differs} {x} {y} {width} {height} />
            }
        </div>
    }
}

struct View<'a> {
    size: Size,
    scroll: f64,
    /// Height of the whole graph.
    content: f64,
    upwards: bool,
    hover: Option<usize>,
    chosen: Option<usize>,
    marked: &'a [usize],
}

/// Returns the top of a row in the whole graph.
fn row_top(depth: f64, content: f64, upwards: bool) -> f64 {
    if upwards { content - (depth + 1.0) * ROW } else { depth * ROW }
}

fn draw(canvas: &HtmlCanvasElement, flame: &Flame, tree: &Tree, palette: &Palette, view: &View<'_>) {
    let Size { width: all, height, ratio } = view.size;
    let (pixel_width, pixel_height) = view.size.device();
    if canvas.width() != pixel_width || canvas.height() != pixel_height {
        canvas.set_width(pixel_width);
        canvas.set_height(pixel_height);
    }
    let context = canvas.get_context("2d").ok().flatten().and_then(|c| c.dyn_into::<CanvasRenderingContext2d>().ok());
    let Some(context) = context else { return };
    // The matrix is finite, so this can't fail.
    let _ = context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0);
    context.clear_rect(0.0, 0.0, all, height);
    context.set_font(&format!("{FONT_PX}px {}", font_family(canvas)));
    context.set_text_baseline("middle");
    let letter = context.measure_text("n").map_or(FONT_PX * 0.55, |metrics| metrics.width());

    let hovered = view.hover.and_then(|i| flame.boxes.get(i));
    let (top, bottom) = (view.scroll, view.scroll + height);
    let (top, bottom) = if view.upwards { (view.content - bottom, view.content - top) } else { (top, bottom) };
    let first = (top / ROW).floor().max(0.0) as usize;
    let last = (bottom / ROW).ceil().max(0.0) as usize;
    let chosen = view.chosen.and_then(|i| flame.boxes.get(i));
    let differs = flame.query.differs;
    for depth in first..last.min(tree.depth()) {
        let y = row_top(depth as f64, view.content, view.upwards) - view.scroll;
        let marked = view.marked.get(depth).filter(|_| depth > 0).and_then(|i| flame.boxes.get(*i));
        for flame_box in tree.row(&flame.boxes, depth) {
            let x0 = f64::from(flame_box.x0) * all;
            let x1 = f64::from(flame_box.x1) * all;
            let is_root = depth == 0;
            let fill = match () {
                () if is_root => palette.raised,
                () if differs => palette.change(flame_box.bytes, flame_box.before, flame_box.paint.has(Paint::DIM)),
                () => palette.fill(flame_box.paint),
            };
            // One device pixel separates neighbours, if there is room.
            let width = (x1 - x0 - 1.0 / ratio).max(0.5);
            let is_hovered = hovered.is_some_and(|h| std::ptr::eq(h, flame_box));
            let fill = if is_hovered { fill.blend(palette.text, 0.2) } else { fill };
            context.set_fill_style_str(&fill.css());
            context.fill_rect(x0, y, width, ROW - 1.0);
            if marked.is_some_and(|m| std::ptr::eq(m, flame_box)) {
                // The text colour stands out on any fill; the end of the stack has a thicker line.
                let line = if depth + 1 == view.marked.len() { 2.0 } else { 1.0 };
                context.set_stroke_style_str(&palette.text.css());
                context.set_line_width(line);
                context.stroke_rect(x0 + line / 2.0, y + line / 2.0, (width - line).max(0.0), ROW - 1.0 - line);
            }
            if chosen.is_some_and(|chosen| std::ptr::eq(chosen, flame_box)) {
                context.set_stroke_style_str(&palette.accent.css());
                context.set_line_width(2.0);
                context.stroke_rect(x0 + 1.0, y + 1.0, (width - 2.0).max(1.0), ROW - 3.0);
            }
            if width >= NAMED_PX {
                let color = if is_root { palette.text } else { text_color(palette, flame_box, fill) };
                context.set_fill_style_str(&color.css());
                let room = width - 2.0 * PAD_PX;
                let name = label(flame_box, flame.total, differs && !is_root, (room / letter) as usize);
                // Squeezed slightly rather than drawn over the neighbour if the letters are wide.
                let _ = context.fill_text_with_max_width(&name, x0 + PAD_PX, y + ROW / 2.0, room);
            }
        }
    }
}

fn text_color(palette: &Palette, flame_box: &FlameBox, fill: crate::render::color::Rgb) -> crate::render::color::Rgb {
    if flame_box.paint.has(Paint::DIM) { palette.text_dim } else { palette.text_on(fill) }
}
