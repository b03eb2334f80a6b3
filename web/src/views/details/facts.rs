//! Tables of facts: names on the left, values on the right, all selectable.

use query::{DeviceSummary, pool_name, stream_name};
use trace::units::{PoolId, Stream};
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, Selection};
use crate::views::controls::sends;
use crate::widgets::bytes_text::bytes_text;

/// Renders a list of facts.
pub fn facts(rows: Vec<Html>) -> Html {
    html! { <dl class="facts">{ for rows }</dl> }
}

/// Renders a fact.
pub fn fact(name: &'static str, value: impl Into<Html>) -> Html {
    html! { <div class="fact" key={name}><dt>{ name }</dt><dd>{ value.into() }</dd></div> }
}

/// Renders a fact with a remark in small print.
pub fn fact_with(name: &'static str, value: Html, remark: Html) -> Html {
    fact(name, html! { <>{ value }<span class="remark">{ remark }</span></> })
}

/// Renders a selection of which nothing but its name is known, and the reason.
pub fn unknown(what: impl Into<Html>, reason: &str) -> Html {
    html! {
        <article class="detail" data-testid="detail-unknown">
            <header class="detail-head"><h2>{ what.into() }</h2></header>
            <p class="quiet">{ reason.to_owned() }</p>
        </article>
    }
}

/// Formats a pool: `large, default pool`, `small, pool (0, 1)`.
pub fn pool_text(pool: PoolId, is_small: bool) -> String {
    let size = if is_small { "small" } else { "large" };
    format!("{size}, {}", pool_name(pool))
}

/// Renders the short name of a stream: `default stream`, `stream 3`. The tooltip shows the recorded value.
pub fn stream_fact(stream: Stream, device: Option<&DeviceSummary>) -> Html {
    let name = stream_name(stream, device.map_or(&[], |device| &device.streams));
    named(name, (stream != Stream::default()).then(|| stream.to_string()))
}

fn named(name: String, recorded: Option<String>) -> Html {
    html! { <span title={recorded.map(|recorded| format!("Recorded as {recorded}"))}>{ name }</span> }
}

/// Renders a button of the row of actions.
pub fn act(
    label: &'static str,
    testid: &'static str,
    title: &'static str,
    onclick: Option<Callback<MouseEvent>>,
) -> Html {
    html! {
        <button type="button" class="act" data-testid={testid} {title} disabled={onclick.is_none()} {onclick}>{ label }</button>
    }
}

/// Renders allocations with their bytes, each as a button that selects it; nothing without any.
pub fn picks(model: &ModelHandle, title: &'static str, allocations: &[(u32, u64)]) -> Html {
    if allocations.is_empty() {
        return Html::default();
    }
    html! {
        <>
            <h3>{ title }</h3>
            <ul class="picks">
                { for allocations.iter().map(|&(id, bytes)| html! {
                    <li key={id}>
                        <button type="button" class="link" data-menu={format!("a{id}")} onclick={sends(model, Action::Select(Selection::Allocation(id)))} data-testid="site-allocation">
                            { bytes_text(bytes) }
                        </button>
                    </li>
                }) }
            </ul>
        </>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_in_words() {
        assert_eq!(pool_text(PoolId(0, 0), true), "small, default pool");
        assert_eq!(pool_text(PoolId(0, 3), false), "large, pool (0, 3)");
    }
}
