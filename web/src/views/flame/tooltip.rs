//! The tooltip of a box of the flame graph.

use query::FlameBox;
use trace::units::Bytes;
use yew::prelude::*;

use super::label::change;
use crate::widgets::format::{counted, share};
use crate::widgets::style::{pixels, set_style};

/// Maximum width of a tooltip in pixels; the same as in `lists.css`.
const WIDTH: f64 = 420.0;

/// Properties of [`Tooltip`].
#[derive(PartialEq, Properties)]
pub struct TooltipProps {
    /// The box under the pointer.
    pub flame_box: FlameBox,
    /// Total bytes of the graph.
    pub total: u64,
    /// Whether the graph shows a difference.
    pub differs: bool,
    /// The pointer's x coordinate from the left edge of the visible part.
    pub x: f64,
    /// The pointer's y coordinate from its top.
    pub y: f64,
    /// Width of the visible part.
    pub width: f64,
    /// Height of the visible part.
    pub height: f64,
}

/// The tooltip, beside the pointer and inside the view.
#[component]
pub fn Tooltip(props: &TooltipProps) -> Html {
    let node = use_node_ref();
    {
        let node = node.clone();
        let left =
            if props.x + 16.0 + WIDTH > props.width { (props.x - 12.0 - WIDTH).max(4.0) } else { props.x + 16.0 };
        // In the lower half it is above the pointer.
        let above = props.y > props.height / 2.0;
        let (x, y, height) = (left, props.y, props.height);
        use_effect_with((x.to_bits(), y.to_bits(), height.to_bits()), move |_| {
            set_style(&node, "left", &pixels(x));
            set_style(&node, "top", &if above { "auto".to_owned() } else { pixels(y + 16.0) });
            set_style(&node, "bottom", &if above { pixels(height - y + 8.0) } else { "auto".to_owned() });
        });
    }
    let b = &props.flame_box;
    html! {
        <div class="tip" ref={node} aria-hidden="true" data-testid="flame-tip">
            <div class="tip-name">{ b.name.clone() }</div>
            if !b.location.is_empty() {
                <div class="tip-place">{ b.location.clone() }</div>
            }
            <div class="tip-line">
                <b>{ Bytes(b.bytes).to_string() }</b>
                { format!(" · {} of the graph · {}", share(b.bytes.max(b.before), props.total), counted(b.count.into(), "allocation")) }
            </div>
            if props.differs {
                <div class="tip-line">
                    <b>{ change(b.bytes, b.before) }</b>
                    { format!(" · from {} to {}", Bytes(b.before), Bytes(b.bytes)) }
                </div>
            }
            <div class="tip-place">{ Bytes(b.bytes).exact() }</div>
        </div>
    }
}
