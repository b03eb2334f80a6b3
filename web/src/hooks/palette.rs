//! The palette of the current theme, for chips and canvases.

use std::rc::Rc;

use yew::prelude::*;

use super::use_model;
use crate::render::palette::Palette;

thread_local! {
    // Built once, so that views can compare pointers to detect a change of theme.
    static DARK: Rc<Palette> = Rc::new(Palette::dark());
    static LIGHT: Rc<Palette> = Rc::new(Palette::light());
}

/// Returns the palette of the current theme.
#[hook]
pub fn use_palette() -> Rc<Palette> {
    palette(use_model().is_dark())
}

/// Returns the palette of a theme.
pub fn palette(is_dark: bool) -> Rc<Palette> {
    if is_dark { DARK.with(Rc::clone) } else { LIGHT.with(Rc::clone) }
}
