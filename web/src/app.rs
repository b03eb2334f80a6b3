//! The page: it holds the model and lays out the components that read it.

use std::rc::Rc;

use trace::text::escaped;
use yew::prelude::*;

use crate::address::{self, use_address_bar};
use crate::browser::{Timeout, document, is_narrow, root, use_effect_with};
use crate::deferred::{self, Deferred, Part};
use crate::hooks::{
    ModelSource, Store, remembered_preferences, remembered_rules, use_diagnosis, use_followers, use_identities,
    use_preferences, use_putting_away,
};
use crate::input::{use_hold, use_keys};
use crate::later;
use crate::model::{Action, Model, Parts, Phase, Place};
use crate::shell::{Notice, Workbench, announcer, failed, header, loading, start_page, title};
use crate::source::{self, DropZone, file_picker, open_shared, token_of_page, uploads};
use crate::theme;

/// Renders the page into its element. `read_trace` returns a promise of the trace inside the page, if there is one.
pub fn start(read_trace: Option<js_sys::Function>) {
    deferred::set_loader(later::load);
    let (rules, place, preferences) = (remembered_rules(), source::place(), remembered_preferences());
    source::take_token(place);
    let mut model = Model {
        rules: Rc::new(rules.clone()),
        theme: preferences.theme,
        // On a narrow page the details would take the view's room.
        is_details_open: preferences.is_details_open && !is_narrow(),
        preferences,
        is_system_dark: theme::is_system_dark(),
        has_uploads: place.has_server() && !uploads::all().is_empty(),
        place,
        history: address::history(),
        ..Model::default()
    };
    if let Some(action) = address::read() {
        model = crate::model::update(&model, action);
    }
    let store = Store::new(model);
    store.handle().workers().set_rules(&rules);
    if let Some(read) = read_trace {
        store.handle().dispatch(Action::StepJoined);
        source::open_embedded(&store.handle(), &read);
    }
    if let Some(element) = document().get_element_by_id("app") {
        yew::Renderer::<App>::with_root_and_props(element, AppProps { store }).render();
    }
}

/// Milliseconds after the start until the second module is loaded, unless something needs it before.
const PRELOAD_MS: i32 = 2_000;

/// Properties of [`App`].
#[derive(Properties)]
pub struct AppProps {
    store: Store,
}

impl PartialEq for AppProps {
    fn eq(&self, _: &Self) -> bool {
        // There is one store for the lifetime of the page.
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
            let listening = store.listen(Parts::REST, Callback::from(move |()| redraw.force_update()));
            let handle = store.handle();
            // A page in one file has no server, whatever its name.
            let shared = token_of_page().filter(|_| handle.place != Place::OneFile);
            if handle.place != Place::OneFile {
                // A shared trace is being downloaded right away, and needs the network for itself.
                handle.workers().warm_up(shared.is_none());
            }
            // A file that is dropped at once needs both cores of a small machine for itself.
            let rest = Timeout::new(PRELOAD_MS, deferred::preload);
            if shared.is_some() || address::names_something() {
                // Opening what the address names is not a step of its own.
                handle.dispatch(Action::StepJoined);
            }
            if let Some(token) = shared {
                open_shared(&handle, &token);
            }
            let linked = handle.link.as_ref().and_then(|link| link.session.clone());
            if let Some(session) = linked {
                source::watch(&handle, &session);
            }
            source::begin_recent(&handle);
            source::open_named(&handle);
            source::offer_address(&handle);
            let messages = source::listen(&handle);
            crate::render::painter::Backend::preferred();
            let listener = theme::watch_system(move |is_dark| handle.dispatch(Action::SystemTheme { is_dark }));
            move || drop((listening, rest, listener, messages))
        });
    }
    let model = store.handle();
    theme::apply(&model);
    use_effect_with(model.data_state(), |state| {
        let _ = root().set_attribute("data-state", state.name());
    });
    use_effect_with(title(&model), |title| document().set_title(&escaped(title)));

    let body = match model.file().map(|file| &file.phase) {
        None => start_page(&model),
        Some(Phase::Loading { .. } | Phase::Away) => loading(&model),
        Some(Phase::Failed { .. }) => failed(&model),
        Some(Phase::Sweep(_)) => {
            html! { <Deferred key={model.current.map_or(0, |key| key.0)} part={Part::Sweep} /> }
        }
        // Each file gets a new workbench: no state of a view carries over.
        Some(Phase::Ready { .. }) => html! { <Workbench key={model.current.map_or(0, |key| key.0)} /> },
    };
    let (header, announced, picker) = (header(&model), announcer(&model), file_picker(&model));
    let dialog = match model.dialog {
        None => Html::default(),
        Some(dialog) => html! { <Deferred part={Part::Dialog(dialog)} /> },
    };
    html! {
        <ContextProvider<ModelSource> context={ModelSource { store, beside: None }}>
            { header }
            { body }
            { announced }
            <Notice />
            { dialog }
            <DropZone />
            { picker }
            <Background />
        </ContextProvider<ModelSource>>
    }
}

/// Shows nothing; handles keys, the address bar and what follows from changes of the model.
#[component]
fn Background() -> Html {
    use_keys();
    use_hold();
    use_address_bar();
    use_followers();
    use_diagnosis();
    use_identities();
    source::use_recent();
    use_preferences();
    use_putting_away();
    Html::default()
}
