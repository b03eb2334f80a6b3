//! The page of an open file: how far reading it has come, then its workbench.
//!
//! The workbench is mounted as soon as the browser has shown that the file is being read, and stays unseen until it has
//! been. A browser takes as long to create and lay out the workbench for the first time as to read a small file, so it does
//! one during the other.

use yew::prelude::*;

use super::loading::loading;
use super::workbench::Workbench;
use crate::browser::after_next_frame;
use crate::hooks::use_model;

/// The page of the current file, which is being read or has been read.
#[component]
pub fn FilePage() -> Html {
    let model = use_model();
    let is_read = model.summary().is_some();
    let has_begun = use_state_eq(|| false);
    {
        let has_begun = has_begun.setter();
        use_effect_with((), move |()| after_next_frame(move || has_begun.set(true)));
    }
    html! {
        <div class="file-page">
            if is_read || *has_begun {
                <Workbench />
            }
            if !is_read {
                { loading(&model) }
            }
        </div>
    }
}
