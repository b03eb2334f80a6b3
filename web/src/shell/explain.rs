//! A dialog that explains the text of an error: pasted or dropped anywhere on the page, or put into its field.

use wasm_bindgen_futures::spawn_local;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::use_model_of;
use crate::model::Parts;
use crate::source::http::Request;
use crate::source::json::Json;
use crate::source::take_text;
use crate::views::folding::rules_dialog;
use crate::widgets::copy::CopyButton;

/// The dialog.
#[component]
pub fn ExplainDialog() -> Html {
    let model = use_model_of(Parts::REST);
    let field = use_node_ref();
    let answer = use_state(|| None::<Result<Html, String>>);
    let given = use_memo((), |()| take_text());
    let asked = use_mut_ref(|| 0_u32);
    let ask = {
        let (answer, asked) = (answer.clone(), asked);
        Callback::from(move |text: String| {
            let (answer, asked) = (answer.clone(), asked.clone());
            let number = {
                let mut asked = asked.borrow_mut();
                *asked += 1;
                *asked
            };
            spawn_local(async move {
                let got = Request::new("POST", "explain").with_text(&text).json().await;
                // Another text was asked about meanwhile.
                if *asked.borrow() == number {
                    answer.set(Some(match got {
                        Ok(json) if json.is("is_known") => Ok(explained(&json.list("parts"))),
                        Ok(json) => Err(json.text("text")),
                        Err(refusal) => Err(refusal.sentence()),
                    }));
                }
            });
        })
    };
    {
        let (ask, given) = (ask.clone(), given.clone());
        use_effect_with((), move |()| {
            if !given.is_empty() {
                ask.emit((*given).clone());
            }
        });
    }
    let onclick = {
        let field = field.clone();
        Callback::from(move |_: MouseEvent| {
            let text = field.cast::<HtmlTextAreaElement>().map(|field| field.value()).unwrap_or_default();
            ask.emit(text);
        })
    };
    let answer = match &*answer {
        None => Html::default(),
        Some(Ok(explained)) => explained.clone(),
        Some(Err(sentence)) => html! { <p class="folding-wrong" data-testid="explain-failed">{ sentence.clone() }</p> },
    };
    let body = html! {
        <>
            <textarea ref={field} rows="6" spellcheck="false" data-autofocus="true" aria-label="Text of the error" defaultvalue={(*given).clone()}
                placeholder="CUDA out of memory. Tried to allocate …" data-testid="explain-text" />
            <p class="quiet">{ "An out-of-memory error of any release, a log with several, memory_summary(), or nvidia-smi. It goes to the server of this page, which keeps nothing of it." }</p>
            <button type="button" class="act" {onclick} data-testid="explain-ask">{ "Explain" }</button>
            <div role="status">{ answer }</div>
        </>
    };
    rules_dialog(&model, "Explain an error", "explain", body)
}

/// Renders the errors of a text. What to record next is the same for all of them, and stands below the last one.
fn explained(errors: &[Json]) -> Html {
    let row = |fact: &Json| html! { <div><dt>{ fact.text("name") }</dt><dd>{ fact.text("size") }</dd></div> };
    let advice = |help: &Json| {
        let copy = help.text("copy");
        html! {
            <li>
                { help.text("text") }
                if !copy.is_empty() { <span class="remedy-code"><code class="mono">{ copy.clone() }</code><CopyButton text={copy} label="Copy" /></span> }
            </li>
        }
    };
    html! {
        <div class="explained" data-testid="explained">
            { for errors.iter().map(|error| {
                let (place, line) = (error.text("place"), error.text("line"));
                html! {
                    <>
                        if errors.len() > 1 && !place.is_empty() { <h3>{ place }</h3> }
                        <p><b>{ error.text("sentence") }</b></p>
                        if !line.is_empty() { <p>{ "Requested at " }<code class="mono">{ line }</code></p> }
                        <dl class="verdict-numbers">{ for error.list("facts").iter().map(row) }</dl>
                        <ul class="remedies" aria-label="What to try">{ for error.list("help").iter().map(advice) }</ul>
                    </>
                }
            }) }
            <p class="quiet">{ errors.last().map(|error| error.text("next")).unwrap_or_default() }</p>
        </div>
    }
}
