//! The palette of the theme in force, for chips and canvases.

use std::rc::Rc;

use yew::prelude::*;

use super::use_model;
use crate::render::palette::Palette;

thread_local! {
    // Built once: views compare the pointer to know that the theme is still the same.
    static DARK: Rc<Palette> = Rc::new(Palette::dark());
    static LIGHT: Rc<Palette> = Rc::new(Palette::light());
}

/// The colours of the theme in force.
#[hook]
pub fn use_palette() -> Rc<Palette> {
    palette(use_model().is_dark())
}

/// The colours of a theme.
pub fn palette(is_dark: bool) -> Rc<Palette> {
    if is_dark { DARK.with(Rc::clone) } else { LIGHT.with(Rc::clone) }
}
