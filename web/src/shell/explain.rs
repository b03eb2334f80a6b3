//! A dialog that explains the text of an error: pasted or dropped anywhere on the page, or put into its field.

use wasm_bindgen_futures::spawn_local;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::use_model;
use crate::source::http::Request;
use crate::source::take_text;
use crate::views::folding::rules_dialog;

/// The dialog.
#[component]
pub fn ExplainDialog() -> Html {
    let model = use_model();
    let field = use_node_ref();
    let answer = use_state_eq(|| None::<Result<String, String>>);
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
                    let said = got.map(|json| (json.is("is_known"), json.text("text")));
                    answer.set(Some(match said {
                        Ok((true, text)) => Ok(text),
                        Ok((false, sentence)) => Err(sentence),
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
        Some(Ok(text)) => html! { <pre class="explained" data-testid="explained">{ text.clone() }</pre> },
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
