//! Small components and formats that several views share. They do not know the model.

pub mod brief;
pub mod bytes_text;
pub mod chips;
pub mod copy;
pub mod dialog;
pub mod draft_field;
pub mod empty;
pub mod format;
pub mod icon;
pub mod menu;
pub mod popup_menu;
pub mod scroller;
pub mod share_bar;
pub mod site_text;
pub mod stack_list;
pub mod style;
pub mod toolbar;
pub mod virtual_list;
