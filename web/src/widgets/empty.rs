//! What an empty view says: why, and what would fill it.

use yew::prelude::*;

use super::copy::{CopyButtonProps, copy_button};

/// Records a snapshot with all that the page can show; the names are PyTorch's.
pub const RECORD_SNIPPET: &str = "\
torch.cuda.memory._record_memory_history(max_entries=1_000_000)
…  # run the part to look at
torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")
";

/// What [`empty`] is given.
pub struct EmptyProps {
    /// One sentence: what is missing.
    pub title: AttrValue,
    /// One sentence: what would fill it.
    pub hint: AttrValue,
    /// Whether to show how a snapshot is recorded.
    pub snippet: bool,
}

/// An empty view.
pub fn empty(props: EmptyProps) -> Html {
    html! {
        <div class="empty" data-testid="empty">
            <h2>{ props.title.clone() }</h2>
            <p>{ props.hint.clone() }</p>
            if props.snippet {
                <div class="snippet">
                    <pre><code>{ RECORD_SNIPPET }</code></pre>
                    { copy_button(CopyButtonProps { text: RECORD_SNIPPET.into(), label: "Copy".into() }) }
                </div>
            }
        </div>
    }
}
