//! The contents of an empty view: why it is empty, and what would fill it.

use yew::prelude::*;

use super::copy::CopyButton;

/// Code that records a snapshot with everything that the page can show.
pub const RECORD_SNIPPET: &str = "\
import torch
torch.cuda.memory._record_memory_history(max_entries=1_000_000)
# run the part to look at
torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")
";

/// Renders an empty view: what is missing, and what would fill it, in a sentence each. `with_snippet` adds the code
/// that records a snapshot.
pub fn empty(title: &'static str, hint: impl Into<AttrValue>, with_snippet: bool) -> Html {
    html! {
        <div class="empty" data-testid="empty">
            <h2>{ title }</h2>
            <p>{ hint.into() }</p>
            if with_snippet {
                <div class="snippet">
                    <pre><code>{ RECORD_SNIPPET }</code></pre>
                    <CopyButton text={RECORD_SNIPPET} label="Copy" />
                </div>
            }
        </div>
    }
}
