//! A dialog that explains the text of an error: pasted or dropped anywhere on the page, or put into its field.

use std::cell::RefCell;

use trace::limits::PASTED_BYTES;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{File, HtmlTextAreaElement};
use yew::prelude::*;

use crate::browser::{after_next_frame, use_effect_with};
use crate::hooks::{ModelHandle, use_model};
use crate::model::{Action, Dialog};
use crate::source::http::Request;
use crate::views::folding::rules_dialog;

thread_local! {
    /// The text that the dialog begins with.
    static GIVEN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Opens the dialog with a text, and explains it.
pub fn explain(model: &ModelHandle, text: String) {
    GIVEN.set(text);
    let open = {
        let model = model.clone();
        move || model.dispatch(Action::OpenDialog(Dialog::Explain))
    };
    match model.now().dialog {
        // With the text that it has it is another dialog.
        Some(Dialog::Explain) => {
            model.dispatch(Action::CloseDialog);
            after_next_frame(open);
        }
        _ => open(),
    }
}

/// Whether a file is a text, such as the log of a job.
pub fn is_text(file: &File) -> bool {
    let name = file.name().to_ascii_lowercase();
    let is_log = [".log", ".txt", ".out", ".err"].iter().any(|end| name.ends_with(end));
    is_log || file.type_() == "text/plain"
}

/// Opens the dialog with the text of a file: with its end, where the last error stands.
pub fn explain_file(model: &ModelHandle, file: &File) {
    let Ok(end) = file.slice_with_f64((file.size() - PASTED_BYTES as f64).max(0.0)) else { return };
    let model = model.clone();
    spawn_local(async move {
        let text = JsFuture::from(end.text()).await.ok();
        explain(&model, text.and_then(|text| text.as_string()).unwrap_or_default());
    });
}

/// The dialog.
#[component]
pub fn ExplainDialog() -> Html {
    let model = use_model();
    let field = use_node_ref();
    let answer = use_state_eq(|| None::<Result<String, String>>);
    let given = use_memo((), |()| GIVEN.take());
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
            <textarea ref={field} rows="6" spellcheck="false" data-autofocus="true" aria-label="Text of the error" value={(*given).clone()}
                placeholder="CUDA out of memory. Tried to allocate …" data-testid="explain-text" />
            <p class="quiet">{ "An out-of-memory error of any release, a log with several, memory_summary(), or nvidia-smi. It goes to the server of this page, which keeps nothing of it." }</p>
            <button type="button" class="act" {onclick} data-testid="explain-ask">{ "Explain" }</button>
            <div role="status">{ answer }</div>
        </>
    };
    rules_dialog(&model, "Explain an error", "explain", body)
}
