//! A wide table that scrolls sideways by itself.

use yew::prelude::*;

/// Properties of [`Scroller`].
#[derive(PartialEq, Properties)]
pub struct ScrollerProps {
    /// The name for screen readers.
    pub name: &'static str,
    /// The table.
    pub children: Html,
}

/// The scroller of a table. It takes the focus, so that keys scroll it too.
#[component]
pub fn Scroller(props: &ScrollerProps) -> Html {
    let onkeydown = Callback::from(|event: KeyboardEvent| {
        // Elsewhere in the tab, these keys move the window.
        if matches!(event.key().as_str(), "ArrowLeft" | "ArrowRight") {
            event.stop_propagation();
        }
    });
    html! {
        <div class="whatif-scroll" role="group" aria-label={props.name} tabindex="0" {onkeydown}>{ props.children.clone() }</div>
    }
}
