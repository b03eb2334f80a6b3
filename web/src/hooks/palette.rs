//! The palette of the current theme, for chips and canvases.

use std::cell::RefCell;
use std::rc::Rc;

use query::Paint;
use yew::prelude::*;

use super::use_model;
use crate::model::Model;
use crate::render::palette::Palette;

/// What a palette depends on: whether it is dark, and the line of the verdict.
type Key = (bool, Option<Paint>);

thread_local! {
    // Views compare pointers to detect a change, so none is dropped. There is one for each theme and verdict.
    static BUILT: RefCell<Vec<(Key, Rc<Palette>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the palette of the current theme.
#[hook]
pub fn use_palette() -> Rc<Palette> {
    palette(&use_model())
}

/// Returns the palette of a model's theme, with the line of its verdict as the culprit.
pub fn palette(model: &Model) -> Rc<Palette> {
    let key @ (is_dark, culprit) = (model.is_dark(), model.culprit());
    BUILT.with_borrow_mut(|built| {
        if let Some((_, palette)) = built.iter().find(|(of, _)| *of == key) {
            return palette.clone();
        }
        let theme = if is_dark { Palette::dark() } else { Palette::light() };
        let palette = Rc::new(theme.accusing(culprit));
        built.push((key, palette.clone()));
        palette
    })
}
