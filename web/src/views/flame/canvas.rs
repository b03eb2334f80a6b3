//! The flame graph's canvas, which stays in view while the graph scrolls under it. Callers grow upwards from the function
//! that they call.

use std::cell::RefCell;
use std::rc::Rc;

use query::FlameBox;
use web_sys::Element;
use yew::prelude::*;

use super::Shown;
use super::layout::Tree;
use super::picture::{FlamePicture, ROW, Scene};
use super::tooltip::tooltip;
use crate::browser::use_effect_with;
use crate::hooks::{use_model_of, use_palette};
use crate::model::{Parts, Subject};
use crate::render::canvas::{Canvas, use_canvas};
use crate::views::chart::listen::{Input, Pointed, use_pointer};
use crate::views::controls::place_tip;
use crate::views::menu_target::use_menu_target;
use crate::widgets::style::{pixels, set_style};

/// Properties of [`FlameCanvas`].
#[derive(PartialEq, Properties)]
pub struct FlameCanvasProps {
    /// What is drawn.
    pub answer: Shown,
    /// Its boxes as a tree.
    pub tree: Rc<Tree>,
    /// The boxes of the selected stack, from the root, to be outlined.
    pub marked: Vec<usize>,
    /// The chosen box.
    pub chosen: Option<usize>,
    /// Whether the graph grows upwards.
    #[prop_or_default]
    pub upwards: bool,
    /// Whether its boxes are other ones than those of the flame tab: paths to them are not followed there.
    #[prop_or_default]
    pub is_apart: bool,
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
    let model = use_model_of(Parts::REST);
    let palette = use_palette();
    let canvas = use_canvas(FlamePicture::default);
    let (scroller, spacer, tip) = (use_node_ref(), use_node_ref(), use_node_ref());
    let scrolled = use_state_eq(|| 0.0_f64);
    // Where the pointer is. What is there changes with the answer.
    let pointer = use_state_eq(|| None::<(f64, f64)>);
    let (size, upwards, chosen) = (canvas.size(), props.upwards, props.chosen);
    let is_apart = upwards || props.is_apart;
    canvas.change(|picture| {
        picture.scene = props.answer.0.clone().map(|answer| Scene {
            answer,
            tree: Rc::clone(&props.tree),
            palette,
            scroll: *scrolled,
            upwards,
            marked: props.marked.clone(),
            chosen,
        });
        picture.hover = pointer.and_then(|at| picture.scene.as_ref()?.at(at, size));
    });
    use_effect_with((size.width.to_bits(), props.on_width.clone()), move |(_, on_width)| {
        if size.width > 0.0 {
            on_width.emit(size.width as f32);
        }
    });
    {
        let (scroller, spacer) = (scroller.clone(), spacer.clone());
        let content = (props.tree.depth() as f64 * ROW).max(size.height);
        use_effect_with((props.tree.depth(), size.height.to_bits()), move |_| {
            set_style(&spacer, "height", &pixels(content - size.height));
            // The root of a graph that grows upwards is at the bottom.
            if let Some(scroller) = scroller.cast::<Element>().filter(|_| upwards) {
                scroller.set_scroll_top(content as i32);
            }
        });
    }

    let find = {
        let canvas = canvas.clone();
        Rc::new(move |at: (i32, i32)| {
            let found = under(&canvas, canvas.point((at.0.into(), at.1.into())))?;
            canvas.read(|picture| {
                let scene = picture.scene.as_ref()?;
                let boxes = &scene.flame()?.boxes;
                let FlameBox { name, location, bytes, stack, .. } = boxes.get(found)?.clone();
                // Transforms apply to the tab's graph.
                let path = if is_apart { Vec::new() } else { scene.tree.zoom_path(boxes, found) };
                Some(Subject::Frame { name, location, bytes, stack, path })
            })
        })
    };
    use_menu_target(&model, &canvas.host(), find);
    // Listeners live as long as the component; they call the function of the last render.
    let on_pick = use_mut_ref(Callback::noop);
    on_pick.borrow_mut().clone_from(&props.on_pick);
    use_pointer({
        let (canvas, pointer, tooltip) = (canvas.clone(), pointer.clone(), tip.clone());
        move || PointerHandler { canvas, pointer, tooltip, on_pick }
    });
    let onkeydown = {
        let (canvas, model, scroller) = (canvas.clone(), model.clone(), scroller.clone());
        let (on_pick, on_choose) = (props.on_pick.clone(), props.on_choose.clone());
        Callback::from(move |event: KeyboardEvent| {
            if event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key() {
                return;
            }
            let key = event.key();
            let found = canvas.read(|picture| {
                let scene = picture.scene.as_ref()?;
                let (tree, boxes) = (&scene.tree, &scene.flame()?.boxes);
                // The current model, since keys may come faster than renders.
                let at = match is_apart {
                    true => chosen.unwrap_or(0),
                    false => tree.at_path(boxes, &model.now().view.flame_box).unwrap_or(0),
                };
                let (inwards, outwards) = if upwards { ("ArrowUp", "ArrowDown") } else { ("ArrowDown", "ArrowUp") };
                let to = match key.as_str() {
                    "Enter" => Some(at),
                    key if key == inwards => tree.children.get(at).and_then(|below| below.first().copied()),
                    key if key == outwards => tree.parent.get(at).copied().flatten(),
                    "ArrowLeft" => tree.beside(boxes, at, false),
                    "ArrowRight" => tree.beside(boxes, at, true),
                    _ => return None,
                };
                let top = to.and_then(|to| boxes.get(to)).map(|b| scene.row_top(b.depth, canvas.size().height));
                Some((at, to, top.unwrap_or_default()))
            });
            let Some((at, to, top)) = found else { return };
            event.prevent_default();
            event.stop_propagation();
            if key == "Enter" {
                on_pick.emit(at);
            } else if let Some(to) = to {
                on_choose.emit(to);
                if let Some(scroller) = scroller.cast::<Element>() {
                    let (shown, height) = (f64::from(scroller.scroll_top()), canvas.size().height);
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

    let hovered = canvas.read(|picture| {
        let flame = picture.scene.as_ref()?.flame()?;
        Some((flame.boxes.get(picture.hover?)?.clone(), flame.total, flame.query.differs))
    });
    html! {
        <div class="flame-body">
            <div class="flame-scroll" ref={scroller} {onscroll} {onkeydown} tabindex="0" role="group"
                aria-label="Flame graph: arrow keys choose a box, Enter zooms into it" data-testid="flame-scroll">
                <div ref={canvas.host()} class="canvas-host is-sticky" role="img" data-testid="flame-canvas"
                    aria-label="Flame graph. The table view shows the same data for keyboards and screen readers.">
                    { canvas.html() }
                    <div ref={tip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true" data-testid="flame-tip">
                        if let Some((flame_box, total, differs)) = hovered {
                            { tooltip(&flame_box, total, differs) }
                        }
                    </div>
                </div>
                <div ref={spacer} />
            </div>
        </div>
    }
}

/// Returns the box at a point of the picture.
fn under(canvas: &Canvas<FlamePicture>, at: (f64, f64)) -> Option<usize> {
    canvas.read(|picture| picture.scene.as_ref()?.at(at, canvas.size()))
}

/// Handles what the pointer does over the graph.
struct PointerHandler {
    canvas: Canvas<FlamePicture>,
    pointer: UseStateHandle<Option<(f64, f64)>>,
    tooltip: NodeRef,
    on_pick: Rc<RefCell<Callback<usize>>>,
}

impl Pointed for PointerHandler {
    fn host(&self) -> NodeRef {
        self.canvas.host()
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.canvas.point(client)
    }

    fn takes_wheel(&self, _is_pinch: bool) -> bool {
        false
    }

    fn input(&self, at: (f64, f64), input: Input<'_>) -> bool {
        match input {
            Input::Move { .. } => {
                place_tip(&self.tooltip, at, self.canvas.size());
                self.pointer.set(Some(at));
            }
            Input::Leave => self.pointer.set(None),
            Input::Click => {
                if let Some(found) = under(&self.canvas, at) {
                    let on_pick = self.on_pick.borrow().clone();
                    on_pick.emit(found);
                }
            }
            _ => {}
        }
        false
    }
}
