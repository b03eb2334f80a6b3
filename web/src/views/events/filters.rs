//! Fields that filter the list by line, size and stream. They produce terms of the search box.

use query::term::Term;
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use crate::browser::{is_narrow, use_effect_with};
use crate::hooks::{check_term, use_model_of};
use crate::model::{Action, Parts};

/// What is typed into the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// A function, a file or a line.
    pub line: String,
    /// The smallest size.
    pub least: String,
    /// The largest size.
    pub most: String,
    /// The stream as it is written in a term; empty for any.
    pub stream: String,
}

impl Fields {
    /// Returns the terms.
    ///
    /// # Errors
    ///
    /// Returns a sentence for the user if a term can't be parsed.
    pub fn terms(&self) -> Result<Vec<String>, String> {
        let of = |start: &str, text: &str| {
            Some(text.trim()).filter(|text| !text.is_empty()).map(|text| format!("{start}{text}"))
        };
        let terms =
            [of("", &self.line), of("size>=", &self.least), of("size<=", &self.most), of("stream:", &self.stream)];
        let terms: Vec<String> = terms.into_iter().flatten().collect();
        terms.iter().try_for_each(|term| Term::parse(term).map(|_| ()))?;
        Ok(terms)
    }
}

/// Properties of [`FilterForm`].
#[derive(PartialEq, Properties)]
pub struct FilterFormProps {
    /// Called when Esc is pressed in it.
    pub on_close: Callback<()>,
}

/// The form. The first field has the focus when it opens.
#[component]
pub fn FilterForm(props: &FilterFormProps) -> Html {
    let model = use_model_of(Parts::REST);
    let (line, least, most, stream) = (use_node_ref(), use_node_ref(), use_node_ref(), use_node_ref());
    let error = use_state_eq(|| None::<String>);
    let onsubmit = {
        let (model, error) = (model.clone(), error.clone());
        let (line, least, most, stream) = (line.clone(), least.clone(), most.clone(), stream.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            let inputs = [&line, &least, &most].map(NodeRef::cast::<HtmlInputElement>);
            let typed = |i: usize| inputs[i].as_ref().map(HtmlInputElement::value).unwrap_or_default();
            let select = stream.cast::<HtmlSelectElement>();
            let chosen = select.as_ref().map(HtmlSelectElement::value).unwrap_or_default();
            let terms = match (Fields { line: typed(0), least: typed(1), most: typed(2), stream: chosen }).terms() {
                Ok(terms) if !terms.is_empty() => terms,
                other => return error.set(other.err()),
            };
            let all = terms.join(" ");
            let (handle, error) = (model.clone(), error.clone());
            let reply = Callback::from(move |read: Result<(), String>| {
                if read.is_ok() {
                    terms.iter().for_each(|term| handle.dispatch(Action::AddFilter(term.clone())));
                    inputs.iter().flatten().for_each(|input| input.set_value(""));
                    if let Some(select) = &select {
                        select.set_selected_index(0);
                    }
                }
                error.set(read.err());
            });
            check_term(&model, &all, &reply);
        })
    };
    {
        let line = line.clone();
        use_effect_with((), move |()| {
            // On a phone the keyboard would cover the list.
            if let Some(input) = line.cast::<HtmlInputElement>().filter(|_| !is_narrow()) {
                // Fails only for elements that can't have the focus.
                let _ = input.focus();
            }
        });
    }
    let onkeydown = {
        let on_close = props.on_close.clone();
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                event.prevent_default();
                event.stop_propagation();
                on_close.emit(());
            }
        })
    };
    let streams = model.device().map(|device| device.streams.clone()).unwrap_or_default();
    html! {
        <form class="event-filters" {onsubmit} {onkeydown} aria-label="Filter events" data-testid="events-filter-form">
            <label class="toolbar-field"><span>{ "Line" }</span>
                <input ref={line} type="text" class="toolbar-input" placeholder="function or file:line" autocomplete="off" spellcheck="false" data-testid="filter-line" /></label>
            <label class="toolbar-field"><span>{ "Size from" }</span>
                <input ref={least} type="text" class="toolbar-input is-short" placeholder="1 MiB" autocomplete="off" data-testid="filter-least" /></label>
            <label class="toolbar-field"><span>{ "to" }</span>
                <input ref={most} type="text" class="toolbar-input is-short" placeholder="1 GiB" autocomplete="off" data-testid="filter-most" /></label>
            if streams.len() > 1 {
                <label class="toolbar-field"><span>{ "Stream" }</span>
                    <select ref={stream} class="toolbar-select" data-testid="filter-stream">
                        <option value="" selected={true}>{ "any" }</option>
                        { for streams.iter().map(|stream| html! { <option value={stream.to_string()}>{ stream.to_string() }</option> }) }
                    </select></label>
            }
            <button type="submit" class="toolbar-button" data-testid="filter-add">{ "Filter" }</button>
            if let Some(error) = &*error {
                <span class="search-error" role="alert">{ error.clone() }</span>
            }
        </form>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_write_terms_of_the_search_box() {
        let fields =
            Fields { line: " model.py:5 ".into(), least: "1mb".into(), most: "2 GiB".into(), stream: "default".into() };
        assert_eq!(fields.terms().unwrap(), ["model.py:5", "size>=1mb", "size<=2 GiB", "stream:default"]);
        assert!(Fields::default().terms().unwrap().is_empty());
        assert!(Fields { least: "much".into(), ..Fields::default() }.terms().is_err());
    }
}
