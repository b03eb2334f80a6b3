//! The frame around the views: the header with its menus, the tabs, the panes, and what is shown while there is no
//! trace to show.

mod details_pane;
mod device_menu;
mod failed;
mod file_menu;
mod header;
mod loading;
mod notice;
mod start_page;
mod tabs;
mod workbench;

pub use failed::Failed;
pub use header::Header;
pub use loading::Loading;
pub use notice::Notice;
pub use start_page::StartPage;
pub use workbench::Workbench;
