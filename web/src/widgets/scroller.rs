//! A wide table that scrolls sideways by itself.

use yew::prelude::*;

/// Renders the scroller of a table, with its name for screen readers. It takes the focus, so that keys scroll it too.
pub fn scroller(name: &'static str, table: Html) -> Html {
    let onkeydown = Callback::from(|event: KeyboardEvent| {
        // Elsewhere in the tab, these keys move the window.
        if matches!(event.key().as_str(), "ArrowLeft" | "ArrowRight") {
            event.stop_propagation();
        }
    });
    html! {
        <div class="whatif-scroll" role="group" aria-label={name} tabindex="0" {onkeydown}>{ table }</div>
    }
}
