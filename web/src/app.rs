//! The page: holds the model, and lays out what reads it.

use yew::prelude::*;

use crate::address::{self, AddressBar};
use crate::browser::{document, root};
use crate::input::{Help, KeyListener, Palette};
use crate::model::{Action, Dialog, Followers, Model, ModelHandle, Phase, Store};
use crate::shell::{Failed, Header, Loading, Notice, StartPage, Workbench};
use crate::source::{DropZone, FilePicker};
use crate::theme;

/// Draws the page into its element.
pub fn start() {
    let mut model = Model { theme: theme::remembered(), is_system_dark: theme::is_system_dark(), ..Model::default() };
    if let Some(action) = address::read() {
        model = crate::model::update(&model, action);
    }
    let store = Store::new(model);
    if let Some(element) = document().get_element_by_id("app") {
        yew::Renderer::<App>::with_root_and_props(element, AppProps { store }).render();
    }
}

/// Properties of [`App`].
#[derive(Properties)]
pub struct AppProps {
    store: Store,
}

impl PartialEq for AppProps {
    fn eq(&self, _: &Self) -> bool {
        // There is one store, for as long as the page lives.
        true
    }
}

/// The whole page.
#[component]
fn App(props: &AppProps) -> Html {
    let redraw = use_force_update();
    let store = props.store.clone();
    {
        let store = store.clone();
        use_effect_with((), move |()| {
            store.set_listener(Callback::from(move |()| redraw.force_update()));
            let handle = store.handle();
            let listener = theme::watch_system(move |is_dark| handle.dispatch(Action::SystemTheme { is_dark }));
            move || drop(listener)
        });
    }
    let model = store.handle();
    theme::apply(&model);
    use_effect_with(model.data_state(), |state| {
        let _ = root().set_attribute("data-state", state.name());
    });
    use_effect_with(title(&model), |title| document().set_title(title));

    let body = match model.file().map(|file| &file.phase) {
        None => html! { <StartPage /> },
        Some(Phase::Loading { .. }) => html! { <Loading /> },
        Some(Phase::Failed { .. }) => html! { <Failed /> },
        // Another file is another page: nothing that a view remembers is carried over.
        Some(Phase::Ready { .. }) => html! { <Workbench key={model.current.map_or(0, |key| key.0)} /> },
    };
    let dialog = match model.dialog {
        None => Html::default(),
        Some(Dialog::Help) => html! { <Help /> },
        Some(Dialog::Palette) => html! { <Palette /> },
    };
    html! {
        <ContextProvider<ModelHandle> context={model}>
            <Header />
            { body }
            <Notice />
            { dialog }
            <DropZone />
            <FilePicker />
            <KeyListener />
            <AddressBar />
            <Followers />
        </ContextProvider<ModelHandle>>
    }
}

/// The window's title: the file first, since that is what tells two tabs apart.
fn title(model: &Model) -> String {
    model.file().map_or_else(|| "Vramscope".to_owned(), |file| format!("{} · Vramscope", file.name))
}
