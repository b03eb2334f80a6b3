//! The rules that fold frames, as a person sets them: from a frame of a stack, or as text in a dialog.

use query::own_rules::OwnRules;
use web_sys::HtmlTextAreaElement;
use yew::prelude::*;

use crate::hooks::{ModelHandle, set_rules, use_model_of};
use crate::model::{Action, Dialog, Parts};
use crate::widgets::dialog::Modal;
use crate::widgets::stack_list::StackSettings;

/// Returns what stacks need to know of the model, and do to it.
pub fn stack_settings(model: &ModelHandle) -> StackSettings {
    let on_rule = {
        let model = model.clone();
        Callback::from(move |(part, is_mine): (String, bool)| {
            let mut rules = (*model.now().rules).clone();
            let folding = &mut rules.folding;
            match if is_mine { folding.add_mine(&part) } else { folding.add_library(&part) } {
                Ok(()) => {
                    set_rules(&model, rules);
                    let whose = if is_mine { "your code" } else { "a library" };
                    model.dispatch(Action::Notify(format!("{part} is {whose} from now on. Undo it in Folding rules.")));
                }
                Err(why) => model.dispatch(Action::Notify(why)),
            }
        })
    };
    let on_rules = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::OpenDialog(Dialog::Folding)))
    };
    StackSettings { folds: model.view.settings.folds, on_rule, on_rules }
}

/// The dialog in which the rules are edited.
#[component]
pub fn FoldingDialog() -> Html {
    let model = use_model_of(Parts::REST);
    let field = use_node_ref();
    // What was typed, and why it was refused.
    let typed = use_state_eq(|| model.rules.folding.to_string());
    let wrong = use_state_eq(String::new);
    let apply = {
        let (model, field, wrong) = (model.clone(), field.clone(), wrong.clone());
        let typed = typed.clone();
        Callback::from(move |_: MouseEvent| {
            let Some(text) = field.cast::<HtmlTextAreaElement>().map(|field| field.value()) else { return };
            match text.parse() {
                Ok(folding) => {
                    let rules = OwnRules { folding, ..(*model.now().rules).clone() };
                    set_rules(&model, rules);
                    model.dispatch(Action::CloseDialog);
                }
                Err(why) => {
                    wrong.set(why);
                    typed.set(text);
                }
            }
        })
    };
    let body = html! {
        <>
                <p>
                    { "Frames of PyTorch, Python and installed packages are folded, and the innermost line of your own \
                       code names an allocation. Write one exception a line:" }
                </p>
                <textarea ref={field} rows="6" spellcheck="false" data-autofocus="true" data-testid="folding-text"
                    aria-label="Folding rules" placeholder={"mine: site-packages/mylib\nlibrary: third_party/transformers"}
                    value={typed.to_string()} />
                <p class="quiet">{ "A part of a path matches whole folder and file names. The longest match wins." }</p>
                <p class="folding-wrong" role="alert">{ wrong.to_string() }</p>
                <button type="button" class="act" onclick={apply} data-testid="folding-apply">{ "Apply" }</button>
        </>
    };
    rules_dialog(&model, "Folding rules", "folding", body)
}

/// Renders a dialog of rules. Its test id is its class.
pub fn rules_dialog(model: &ModelHandle, title: &'static str, class: &'static str, body: Html) -> Html {
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseDialog))
    };
    html! {
        <Modal {title} is_title_hidden={false} {on_close} class={format!("folding {class}")} test_id={class}>
            <div class="folding-body">{ body }</div>
        </Modal>
    }
}
