//! What an empty view says: why, and what would fill it.

use yew::prelude::*;

use super::copy::CopyButton;

/// Records a snapshot with all that the page can show; the names are PyTorch's.
pub const RECORD_SNIPPET: &str = "\
torch.cuda.memory._record_memory_history(max_entries=1_000_000)
…  # run the part to look at
torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")
";

/// An empty view: what is missing, and what would fill it, in a sentence each. `with_snippet` shows how a snapshot is
/// recorded.
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
