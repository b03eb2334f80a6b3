//! A text of which the first sentence is shown, and the rest on request.

use yew::prelude::*;

/// Properties of [`Brief`].
#[derive(PartialEq, Properties)]
pub struct BriefProps {
    /// The sentences.
    pub text: AttrValue,
}

/// The first sentence, with a button that unfolds the others.
#[component]
pub fn Brief(props: &BriefProps) -> Html {
    let is_open = use_state_eq(|| false);
    let (first, rest) = first_sentence(&props.text);
    let toggle = {
        let is_open = is_open.clone();
        Callback::from(move |_: MouseEvent| is_open.set(!*is_open))
    };
    html! {
        <p>
            { if *is_open { props.text.to_string() } else { first.to_owned() } }
            if !rest.is_empty() {
                { " " }
                <button type="button" class="link" aria-expanded={is_open.to_string()} onclick={toggle} data-testid="brief-more">{ if *is_open { "Less" } else { "More" } }</button>
            }
        </p>
    }
}

/// Returns the first sentence of a text, and what follows it. A full stop ends a sentence if a capital follows the space
/// behind it.
fn first_sentence(text: &str) -> (&str, &str) {
    let begins = |at: &usize| text.get(at + 2..).is_some_and(|rest| rest.starts_with(char::is_uppercase));
    match text.match_indices(". ").map(|(at, _)| at).find(begins) {
        Some(at) => (text.get(..=at).unwrap_or(text), text.get(at + 2..).unwrap_or_default()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_sentences_only() {
        assert_eq!(first_sentence("One is 1.5 GiB. Two."), ("One is 1.5 GiB.", "Two."));
        assert_eq!(
            first_sentence("Call torch.cuda.memory._record(…) first."),
            ("Call torch.cuda.memory._record(…) first.", "")
        );
        assert_eq!(first_sentence("At approx. 3 s it grew. Élan."), ("At approx. 3 s it grew.", "Élan."));
        assert_eq!(first_sentence(""), ("", ""));
        assert_eq!(first_sentence("Ends. "), ("Ends. ", ""));
    }
}
