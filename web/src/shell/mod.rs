//! The frame around the views: header, menus, tabs and panes, and the pages that are shown without a trace.

mod detail_bar;
mod details_pane;
mod device_menu;
mod failed;
mod file_menu;
mod header;
mod live_bar;
mod loading;
mod notice;
mod offer;
mod older;
mod password_form;
mod session_list;
mod session_poll;
mod session_row;
mod shared_failed;
mod sparkline;
mod split;
mod start_page;
mod tabs;
mod token_form;
mod workbench;

pub use failed::failed;
pub use header::header;
pub use loading::loading;
pub use notice::Notice;
pub use offer::OfferDialog;
pub use session_list::job_dialog;
pub use start_page::start_page;
pub use token_form::TokenForm;
pub use workbench::Workbench;
