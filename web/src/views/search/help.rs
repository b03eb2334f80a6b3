//! What the search box understands, one click from being tried.

use shared::query::SearchHelp;
use yew::prelude::*;

/// Properties of [`Help`].
#[derive(Properties, PartialEq)]
pub struct HelpProps {
    /// Called with a form that was clicked.
    pub on_example: Callback<String>,
    /// Called to close.
    pub on_close: Callback<()>,
}

/// The forms of a term.
#[component]
pub fn Help(props: &HelpProps) -> Html {
    let onkeydown = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                event.stop_propagation();
                on_close.emit(());
            }
        })
    };
    html! {
        <div class="popover search-help" role="dialog" aria-label="What can be searched for" {onkeydown} data-testid="search-help-list">
            <table>
                <tbody>
                    { for SearchHelp::FORMS.iter().map(|(form, meaning)| {
                        let onclick = props.on_example.reform(move |_| (*form).to_owned());
                        html! {
                            <tr key={*form}>
                                <td><button type="button" class="term" {onclick}>{ *form }</button></td>
                                <td>{ *meaning }</td>
                            </tr>
                        }
                    }) }
                </tbody>
            </table>
            <p class="dim">{ "Enter goes to the next match, Shift+Enter to the one before; Ctrl+Enter makes the term a filter." }</p>
        </div>
    }
}
