//! The search syntax, with examples to click.

use query::SearchHelp;
use yew::prelude::*;

/// Renders the forms of a term, as rows of a menu; `on_example` is called with the one that was chosen.
pub fn help(on_example: &Callback<String>) -> Html {
    html! {
        <>
            { for SearchHelp::FORMS.iter().map(|(form, meaning)| {
                let onclick = on_example.reform(move |_| (*form).to_owned());
                html! {
                    <button type="button" class="menu-row search-form" key={*form} {onclick}>
                        <span class="term">{ *form }</span>
                        <span class="dim">{ *meaning }</span>
                    </button>
                }
            }) }
            <p class="menu-heading">{ "Enter: next match. Shift+Enter: previous match. Ctrl+Enter: turn the term into a filter." }</p>
        </>
    }
}
