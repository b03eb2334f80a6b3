//! The flame graph's canvas, which stays in view while the graph scrolls under it.

use std::rc::Rc;

use shared::analysis::folding::short_name;
use shared::order::Within;
use shared::query::{Answer, Flame, FlameBox, Paint};
use shared::units::Bytes;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement};
use yew::prelude::*;

use super::layout::{ROW, Tree};
use super::tooltip::Tooltip;
use crate::browser::use_size;
use crate::hooks::{use_model, use_palette};
use crate::model::Subject;
use crate::render::palette::Palette;
use crate::views::menu_target::use_menu_target;
use crate::widgets::format::share;
use crate::widgets::stack_list::{last_part, split_path};
use crate::widgets::style::{pixels, set_style};

const FONT_PX: f64 = 11.0;
/// Boxes narrower than this have no label.
const NAMED_PX: f64 = 24.0;
/// Padding between a box's edge and its label.
const PAD_PX: f64 = 4.0;

/// Properties of [`FlameCanvas`].
#[derive(PartialEq, Properties)]
pub struct FlameCanvasProps {
    /// An [`Answer::Flame`].
    pub answer: Rc<Answer>,
    /// Its boxes as a tree.
    pub tree: Rc<Tree>,
    /// The boxes of the selected stack, from the root, to be outlined.
    pub marked: Vec<usize>,
    /// Called with the index of a box that was clicked.
    pub on_pick: Callback<usize>,
    /// Called with the width in pixels, whenever it changes.
    pub on_width: Callback<f32>,
}

/// The flame graph on a canvas.
#[component]
pub fn FlameCanvas(props: &FlameCanvasProps) -> Html {
    let model = use_model();
    let (scroller, sizer, canvas) = (use_node_ref(), use_node_ref(), use_node_ref());
    let (width, height) = use_size(&scroller);
    let scrolled = use_state_eq(|| 0.0_f64);
    let hover = use_state_eq(|| None::<(usize, f64, f64)>);
    let palette = use_palette();
    let answer = props.answer.clone();
    let tree = props.tree.clone();
    let depth = tree.depth();

    use_effect_with((width.to_bits(), props.on_width.clone()), move |(_, on_width)| {
        if width > 0.0 {
            on_width.emit(width as f32);
        }
    });
    {
        let (sizer, canvas) = (sizer.clone(), canvas.clone());
        use_effect_with((depth, width.to_bits(), height.to_bits()), move |&(depth, ..)| {
            set_style(&sizer, "height", &pixels((depth as f64 * ROW).max(height)));
            set_style(&canvas, "width", &pixels(width));
            set_style(&canvas, "height", &pixels(height));
        });
    }
    {
        let (canvas, answer, tree) = (canvas.clone(), answer.clone(), tree.clone());
        let state =
            (width.to_bits(), height.to_bits(), scrolled.to_bits(), hover.map(|(i, ..)| i), props.marked.clone());
        let drawn = (Rc::as_ptr(&answer).addr(), Rc::as_ptr(&palette).addr());
        use_effect_with((state, drawn), move |((_, _, scroll, hover, marked), _)| {
            let Answer::Flame(flame) = &*answer else { return };
            let Some(canvas) = canvas.cast::<HtmlCanvasElement>() else { return };
            let view = View { width, height, scroll: f64::from_bits(*scroll), hover: *hover, marked };
            draw(&canvas, flame, &tree, &palette, &view);
        });
    }

    let pick = {
        let (canvas, answer, tree, scrolled) = (canvas.clone(), answer.clone(), tree, scrolled.clone());
        move |event: &MouseEvent| -> Option<(usize, f64, f64)> {
            let Answer::Flame(flame) = &*answer else { return None };
            let bounds = canvas.cast::<Element>()?.get_bounding_client_rect();
            let (x, y) = (f64::from(event.client_x()) - bounds.left(), f64::from(event.client_y()) - bounds.top());
            if width <= 0.0 || y < 0.0 {
                return None;
            }
            let found = tree.pick(&flame.boxes, ((y + *scrolled) / ROW) as usize, (x / width) as f32)?;
            Some((found, x, y))
        }
    };
    let find = {
        let (node, answer, tree) = (canvas.clone(), answer.clone(), props.tree.clone());
        let scrolled = scrolled.clone();
        Rc::new(move |(x, y): (i32, i32)| {
            let Answer::Flame(flame) = &*answer else { return None };
            let bounds = node.cast::<Element>()?.get_bounding_client_rect();
            let (x, y) = (f64::from(x) - bounds.left(), f64::from(y) - bounds.top());
            let found = tree.pick(&flame.boxes, ((y + *scrolled) / ROW) as usize, (x / width) as f32)?;
            let FlameBox { name, location, bytes, stack, .. } = flame.boxes.get(found)?.clone();
            Some(Subject::Frame { name, location, bytes, stack })
        })
    };
    use_menu_target(&model, &canvas, find, Callback::noop());
    let onpointermove = {
        let (pick, hover) = (pick.clone(), hover.clone());
        Callback::from(move |event: PointerEvent| hover.set(pick(&event)))
    };
    let onpointerleave = {
        let hover = hover.clone();
        Callback::from(move |_| hover.set(None))
    };
    let onclick = {
        let on_pick = props.on_pick.clone();
        Callback::from(move |event: MouseEvent| {
            if let Some((found, ..)) = pick(&event) {
                on_pick.emit(found);
            }
        })
    };
    let onscroll = {
        let (scrolled, hover) = (scrolled, hover.clone());
        Callback::from(move |event: Event| {
            if let Some(element) = event.target_dyn_into::<Element>() {
                scrolled.set(f64::from(element.scroll_top()));
                hover.set(None);
            }
        })
    };

    let tip = hover.and_then(|(i, x, y)| match &*answer {
        Answer::Flame(flame) => flame.boxes.get(i).cloned().map(|flame_box| (flame_box, flame.total, x, y)),
        _ => None,
    });
    html! {
        <div class="flame-body">
            <div class="flame-scroll" ref={scroller} {onscroll}>
                <div class="flame-sizer" ref={sizer}>
                    <canvas ref={canvas} class="flame-canvas" role="img" data-testid="flame-canvas"
                        aria-label="Flame graph. The table view shows the same data for keyboards and screen readers."
                        {onpointermove} {onpointerleave} {onclick} />
                </div>
            </div>
            if let Some((flame_box, total, x, y)) = tip {
                <Tooltip {flame_box} {total} {x} {y} {width} {height} />
            }
        </div>
    }
}

struct View<'a> {
    width: f64,
    height: f64,
    scroll: f64,
    hover: Option<usize>,
    marked: &'a [usize],
}

fn draw(canvas: &HtmlCanvasElement, flame: &Flame, tree: &Tree, palette: &Palette, view: &View<'_>) {
    let ratio = web_sys::window().map_or(1.0, |window| window.device_pixel_ratio()).within(1.0, 3.0);
    let (pixel_width, pixel_height) = ((view.width * ratio).round() as u32, (view.height * ratio).round() as u32);
    if canvas.width() != pixel_width || canvas.height() != pixel_height {
        canvas.set_width(pixel_width);
        canvas.set_height(pixel_height);
    }
    let context = canvas.get_context("2d").ok().flatten().and_then(|c| c.dyn_into::<CanvasRenderingContext2d>().ok());
    let Some(context) = context else { return };
    // The matrix is finite, so this can't fail.
    let _ = context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0);
    context.clear_rect(0.0, 0.0, view.width, view.height);
    context.set_font("11px system-ui, sans-serif");
    context.set_text_baseline("middle");
    let letter = context.measure_text("n").map_or(FONT_PX * 0.55, |metrics| metrics.width());

    let hovered = view.hover.and_then(|i| flame.boxes.get(i));
    let first = (view.scroll / ROW).floor() as usize;
    let last = ((view.scroll + view.height) / ROW).ceil() as usize;
    for depth in first..last.min(tree.depth()) {
        let y = depth as f64 * ROW - view.scroll;
        let marked = view.marked.get(depth).filter(|_| depth > 0).and_then(|i| flame.boxes.get(*i));
        for flame_box in tree.row(&flame.boxes, depth) {
            let x0 = f64::from(flame_box.x0) * view.width;
            let x1 = f64::from(flame_box.x1) * view.width;
            let is_root = depth == 0;
            let fill = if is_root { palette.raised } else { palette.fill(flame_box.paint) };
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
            if width >= NAMED_PX {
                let color = if is_root { palette.text } else { text_color(palette, flame_box, fill) };
                context.set_fill_style_str(&color.css());
                let room = width - 2.0 * PAD_PX;
                let name = label(flame_box, flame.total, (room / letter) as usize);
                // Squeezed slightly rather than drawn over the neighbour if the letters are wide.
                let _ = context.fill_text_with_max_width(&name, x0 + PAD_PX, y + ROW / 2.0, room);
            }
        }
    }
}

fn text_color(palette: &Palette, flame_box: &FlameBox, fill: crate::render::color::Rgb) -> crate::render::color::Rgb {
    if flame_box.paint.has(Paint::DIM) { palette.text_dim } else { palette.text_on(fill) }
}

/// Returns as much of a box's location, name and bytes as fits in `letters`.
fn label(flame_box: &FlameBox, total: u64, letters: usize) -> String {
    let length = |text: &str| text.chars().count();
    let full = short_name(&flame_box.name, "");
    let (place, _) = split_path(&flame_box.location);
    // Frames of native code have no location. For all others it comes first, since many functions share a name such as
    // `forward`.
    let (place, gap) = if place == "??" || place.is_empty() { ("", "") } else { (place, " ") };
    // In a narrow box the end of a qualified name is more useful than its namespaces.
    let before = length(place) + gap.len();
    let name = if before + length(full) > letters { last_part(full) } else { full };
    let mut text = format!("{place}{gap}{name}");
    if length(&text) <= letters {
        let sum = format!("  {} · {}", Bytes(flame_box.bytes), share(flame_box.bytes, total));
        if length(&text) + length(&sum) <= letters {
            text.push_str(&sum);
        }
        return text;
    }
    // A name that is cut to almost nothing is left out.
    if !place.is_empty() && (length(place)..before + 4).contains(&letters) {
        return place.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::flame_box;
    use super::*;

    #[test]
    fn a_label_is_as_long_as_its_room() {
        let mut named = flame_box(1, 0.0, 1.0, 1);
        named.name = "forward".to_owned();
        named.location = "/torch/nn/linear.py:116".to_owned();
        (named.bytes, named.count) = (3 << 20, 1);
        let label = |named: &FlameBox, letters| label(named, 4 << 20, letters);
        assert_eq!(label(&named, 60), "linear.py:116 forward  3.00 MiB · 75.0 %");
        assert_eq!(label(&named, 30), "linear.py:116 forward");
        assert_eq!(label(&named, 18), "linear.py:116 for…");
        assert_eq!(label(&named, 16), "linear.py:116");
        assert_eq!(label(&named, 4), "lin…");
        assert_eq!(label(&named, 0), "…");
        named.name = "at::native::linear(at::Tensor const&)".to_owned();
        named.location = "??".to_owned();
        assert_eq!(label(&named, 18), "at::native::linear");
        assert_eq!(label(&named, 10), "linear");
        assert_eq!(label(&named, 3), "li…");
    }
}
