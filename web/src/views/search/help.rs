//! The search syntax, with examples to click.

use query::SearchHelp;
use yew::prelude::*;

/// Renders the forms of a term; `on_example` is called with the one that was clicked.
pub fn help(on_example: &Callback<String>) -> Html {
    html! {
        <div class="popover search-help" role="dialog" aria-label="Search syntax" data-testid="search-help-list">
            <table>
                <tbody>
                    { for SearchHelp::FORMS.iter().map(|(form, meaning)| {
                        let onclick = on_example.reform(move |_| (*form).to_owned());
                        html! {
                            <tr key={*form}>
                                <td><button type="button" class="term" {onclick}>{ *form }</button></td>
                                <td>{ *meaning }</td>
                            </tr>
                        }
                    }) }
                </tbody>
            </table>
            <p class="dim">{ "Enter: next match. Shift+Enter: previous match. Ctrl+Enter: turn the term into a filter." }</p>
        </div>
    }
}
