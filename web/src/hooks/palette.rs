//! The palette of the current theme, for chips and canvases.

use std::cell::RefCell;
use std::rc::Rc;

use query::{LineColors, Paint};
use yew::prelude::*;

use super::use_model_of;
use crate::model::{Model, Parts};
use crate::render::palette::Palette;

/// What a palette depends on: whether it is dark, the line of the verdict, and the lines that have the colours of others.
type Key = (bool, Option<Paint>, LineColors);

thread_local! {
    // Views compare pointers to detect a change, so none is dropped. There is one for each theme, verdict and comparison.
    static BUILT: RefCell<Vec<(Key, Rc<Palette>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the palette of the current theme.
#[hook]
pub fn use_palette() -> Rc<Palette> {
    palette(&use_model_of(Parts::REST))
}

/// Returns the palette of a model's theme, with the line of its verdict as the culprit.
pub fn palette(model: &Model) -> Rc<Palette> {
    let key = (model.is_dark(), model.culprit(), model.pane.line_colors.clone());
    BUILT.with_borrow_mut(|built| {
        if let Some((_, palette)) = built.iter().find(|(of, _)| *of == key) {
            return palette.clone();
        }
        let (is_dark, culprit, line_colors) = &key;
        let theme = if *is_dark { Palette::dark() } else { Palette::light() };
        let palette = Rc::new(theme.coloring(*culprit, line_colors.clone()));
        built.push((key, palette.clone()));
        palette
    })
}
