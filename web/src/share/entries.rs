//! What becomes of the names and texts of a trace, one by one: what changes comes first.

use std::rc::Rc;

use query::redaction::{Comparison, Entries, Outcome};
use trace::units::Count;
use yew::prelude::*;

/// Entries of a list that are shown at first.
const FEW: usize = 3;
/// Entries that a click shows in addition.
const MORE: usize = 500;
/// The most characters of an entry that is one of several on a line.
const EXAMPLE_CHARS: usize = 60;

/// Returns how many entries change, are left out, and stay.
fn counts(entries: &Entries) -> String {
    let same = entries.rows.len() - entries.renamed - entries.gone;
    let parts = [(entries.renamed, "changed"), (entries.gone, "left out"), (same, "unchanged")];
    let said = parts.into_iter().filter(|(count, _)| *count > 0);
    said.map(|(count, what)| format!("{} {what}", Count(count as u64))).collect::<Vec<_>>().join(", ")
}

/// Renders how many entries there are, with examples on one line.
fn examples(entries: &Entries) -> Html {
    let some: Vec<String> = entries.rows.iter().take(FEW).map(|(entry, _)| shortened(entry)).collect();
    let more = entries.rows.len().saturating_sub(FEW);
    html! {
        <>
            { Count(entries.rows.len() as u64).to_string() }{ ": " }
            <span class="share-examples">{ some.join(", ") }</span>
            if more > 0 { { format!(" and {} more", Count(more as u64)) } }
        </>
    }
}

/// Returns an example on one line. Its end stays, which tells paths apart.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= EXAMPLE_CHARS {
        line
    } else {
        format!("…{}", line.chars().skip(count - EXAMPLE_CHARS).collect::<String>())
    }
}

/// Properties of [`EntryRows`].
#[derive(PartialEq, Properties)]
pub struct EntryRowsProps {
    /// The trace beside its copy.
    pub contents: Rc<Comparison>,
    /// The place of the list.
    pub index: usize,
    /// What decides about its entries.
    pub control: Html,
}

/// The rows of one list: how many entries there are, pairs where the copy says something else, and a button for the others.
#[component]
pub fn EntryRows(props: &EntryRowsProps) -> Html {
    let shown = use_state_eq(|| FEW);
    let Some(entries) = props.contents.lists.get(props.index) else { return Html::default() };
    let name = &entries.name;
    let count = entries.rows.len();
    let is_open = *shown > FEW && count > FEW;
    // No pairs are needed where all share the same fate.
    let is_uniform = entries.gone == count || entries.renamed + entries.gone == 0;
    let has_pairs = is_open || !is_uniform;
    let (was, is) = match (count, has_pairs) {
        (0, _) => (none("none"), none("none")),
        (_, true) => (Html::from(Count(count as u64).to_string()), Html::from(counts(entries))),
        _ if entries.gone == count => (examples(entries), none("left out")),
        _ => (examples(entries), examples(entries)),
    };
    let pairs = entries.rows.iter().take(if has_pairs { *shown } else { 0 }).map(|(entry, outcome)| {
        html! {
            <div class="share-pair" role="row">
                <span role="cell" class="share-examples">{ entry.clone() }</span>
                <span role="cell">{ match outcome {
                    Outcome::Renamed(name) => html! { <><span aria-hidden="true">{ "→ " }</span><span class="share-examples">{ name.clone() }</span></> },
                    Outcome::Gone => none("left out"),
                    Outcome::Same => none("unchanged"),
                } }</span>
            </div>
        }
    });
    let next = if is_open && *shown >= count { FEW } else { shown.max(FEW) + MORE };
    let label = match (is_open, count.saturating_sub(*shown)) {
        (false, _) if count <= FEW + MORE => format!("Show all {}", Count(count as u64)),
        (false, _) => format!("Show the first {}", Count((FEW + MORE) as u64)),
        (true, 0) => "Show fewer".to_owned(),
        (true, left) => format!("Show {} more", Count(left.min(MORE) as u64)),
    };
    let onclick = Callback::from(move |_: MouseEvent| shown.set(next));
    html! {
        <div class="share-row" role="rowgroup" data-testid={format!("share-row-{}", name.to_ascii_lowercase().replace(' ', "-"))}>
            <div class="share-pair" role="row">
                <span role="rowheader"><b>{ name.clone() }</b>{ props.control.clone() }</span>
                <span role="cell" data-label="In this trace">{ was }</span>
                <span role="cell" data-label="In the copy">{ is }</span>
            </div>
            { for pairs }
            if count > FEW {
                <div class="share-more" role="row"><span role="cell">
                <button type="button" class="act share-all" aria-expanded={is_open.to_string()} aria-label={format!("{label}: {name}")} {onclick} data-testid="share-all">{ label.clone() }</button>
                </span></div>
            }
        </div>
    }
}

fn none(text: &'static str) -> Html {
    html! { <span class="share-none">{ text }</span> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_end() {
        assert_eq!(shortened("a\nb"), "a b");
        let long = format!("/start/{}/end", "x".repeat(100));
        let short = shortened(&long);
        assert_eq!(short.chars().count(), EXAMPLE_CHARS + 1);
        assert!(short.starts_with('…') && short.ends_with("/end"));
    }
}
