//! The tooltip of a box of the flame graph.

use query::FlameBox;
use trace::units::Bytes;
use yew::prelude::*;

use super::label::change;
use crate::widgets::format::{counted, share};

/// Renders what the tooltip says of a box. `total` is the sum of the graph, and `differs` whether it shows a difference.
pub fn tooltip(b: &FlameBox, total: u64, differs: bool) -> Html {
    html! {
        <>
            <div class="canvas-tip-title">{ b.name.clone() }</div>
            if !b.location.is_empty() {
                <div class="dim">{ b.location.clone() }</div>
            }
            <div class="tip-line">
                <b>{ Bytes(b.bytes).to_string() }</b>
                { format!(" · {} of the graph · {}", share(b.bytes.max(b.before), total), counted(b.count.into(), "allocation")) }
            </div>
            if differs {
                <div class="tip-line">
                    <b>{ change(b.bytes, b.before) }</b>
                    { format!(" · from {} to {}", Bytes(b.before), Bytes(b.bytes)) }
                </div>
            }
            <div class="dim">{ Bytes(b.bytes).exact() }</div>
        </>
    }
}
