//! A text field that keeps what is being typed until it is finished, even if the page is rendered meanwhile.

use web_sys::HtmlInputElement;
use yew::prelude::*;

/// Properties of [`DraftField`].
#[derive(PartialEq, Properties)]
pub struct DraftFieldProps {
    /// The text that it shows while nobody types. It may change at any time.
    pub value: AttrValue,
    /// Called with a changed text on Enter, and when the field loses the focus.
    pub on_finish: Callback<String>,
    /// The input's `type`.
    #[prop_or(AttrValue::Static("text"))]
    pub kind: AttrValue,
    /// The name for screen readers; `None` if the field is inside a label.
    #[prop_or_default]
    pub name: Option<AttrValue>,
    /// The placeholder of an empty field.
    #[prop_or_default]
    pub placeholder: AttrValue,
    /// The longest text in characters.
    #[prop_or_default]
    pub most: Option<usize>,
    /// The test id.
    pub test_id: AttrValue,
}

/// A text field. It shows what was typed until that is finished; Esc discards it.
#[component]
pub fn DraftField(props: &DraftFieldProps) -> Html {
    // What is being typed; `None` while nothing is.
    let draft = use_state_eq(|| None::<String>);
    let oninput = {
        let draft = draft.clone();
        Callback::from(move |event: InputEvent| {
            draft.set(event.target_dyn_into::<HtmlInputElement>().map(|field| field.value()));
        })
    };
    let finish = {
        let (draft, value, on_finish) = (draft.clone(), props.value.clone(), props.on_finish.clone());
        move || {
            if let Some(text) = (*draft).clone() {
                draft.set(None);
                if text != *value {
                    on_finish.emit(text);
                }
            }
        }
    };
    let onblur = {
        let finish = finish.clone();
        Callback::from(move |_: FocusEvent| finish())
    };
    // The arrows of a number change it and are done.
    let onchange = {
        let finish = finish.clone();
        Callback::from(move |_: Event| finish())
    };
    let onkeydown = {
        let draft = draft.clone();
        Callback::from(move |event: KeyboardEvent| match event.key().as_str() {
            "Enter" => finish(),
            "Escape" if draft.is_some() => {
                draft.set(None);
                event.prevent_default();
                event.stop_propagation();
            }
            _ => {}
        })
    };
    let shown = draft.as_ref().map_or_else(|| props.value.clone(), |text| AttrValue::from(text.clone()));
    html! {
        <input type={props.kind.clone()} autocomplete="off" spellcheck="false" aria-label={props.name.clone()}
            placeholder={props.placeholder.clone()} maxlength={props.most.map(|most| most.to_string())} value={shown}
            {oninput} {onchange} {onblur} {onkeydown} data-testid={props.test_id.clone()} />
    }
}
