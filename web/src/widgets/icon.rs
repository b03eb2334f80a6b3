//! Icons, drawn on a grid of 16 by 16 in the colour of the surrounding text.

use yew::prelude::*;

/// An icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The system's theme.
    System,
    /// The light theme.
    Sun,
    /// The dark theme.
    Moon,
    /// Open a menu.
    ChevronDown,
    /// Close or remove.
    Cross,
    /// Toggle the pane at the right.
    PaneRight,
    /// Open a file.
    Open,
    /// Pause.
    Pause,
    /// Resume.
    Play,
    /// Jump to the newest events.
    ToEnd,
    /// A running job.
    Live,
    /// A job that ended.
    Ended,
    /// A job that disconnected unexpectedly.
    Lost,
    /// Out of memory.
    Flag,
    /// Download.
    Download,
    /// Delete.
    Delete,
    /// Keep something where it is.
    Pin,
    /// More choices.
    More,
    /// Copy a text.
    Copy,
    /// Go to the other one of two.
    Partner,
    /// Let two change places.
    Swap,
    /// Two views beside one another.
    Beside,
    /// Two views over one another.
    Over,
}

impl Symbol {
    /// Returns the strokes as SVG path data.
    const fn path(self) -> &'static str {
        match self {
            Self::System => "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11ZM8 2.5v11M8 5h4.5M8 8h5.5M8 11h4.5",
            Self::Sun => {
                "M8 5.25a2.75 2.75 0 1 0 0 5.5a2.75 2.75 0 0 0 0-5.5ZM8 1v1.75M8 13.25V15M1 8h1.75M13.25 8H15M3.05 3.05\
                 l1.24 1.24M11.71 11.71l1.24 1.24M12.95 3.05l-1.24 1.24M4.29 11.71l-1.24 1.24"
            }
            Self::Moon => "M13.4 9.7A5.6 5.6 0 0 1 6.3 2.6a5.6 5.6 0 1 0 7.1 7.1Z",
            Self::ChevronDown => "M4 6.25l4 4l4-4",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::PaneRight => "M2 3h12v10H2ZM10 3v10",
            Self::Pause => "M5.5 3.5v9M10.5 3.5v9",
            Self::Play => "M5 3l7.5 5L5 13Z",
            Self::ToEnd => "M3.5 3.5L9 8l-5.5 4.5ZM12 3.5v9",
            Self::Live => {
                "M8 5.5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5ZM3.8 3.8a6 6 0 0 0 0 8.4M12.2 3.8a6 6 0 0 1 0 8.4"
            }
            Self::Ended => "M4 4h8v8H4Z",
            Self::Lost => "M8 2.5l6 11H2ZM8 6.5v3.5M8 11.8v.2",
            Self::Flag => "M3.5 14.5V2M3.5 2.5h9L10 5.75L12.5 9h-9",
            Self::Download => "M8 2.5v8M4.75 7.5L8 10.75l3.25-3.25M2.5 13.5h11",
            Self::Delete => "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
            Self::Pin => "M5.5 2.5h5M6.5 2.5v4L4 9.5h8L9.5 6.5v-4M8 9.5v5",
            Self::More => "M3.5 8h.01M8 8h.01M12.5 8h.01",
            Self::Swap => "M3 6h10L10 3M13 10H3l3 3",
            Self::Copy => "M6 5.5h7v8H6ZM10 5.5v-3H3v8h3",
            Self::Partner => "M2.5 5.5h11l-3-3M13.5 10.5h-11l3 3",
            Self::Beside => "M2 3h12v10H2ZM8 3v10",
            Self::Over => "M2 3h12v10H2ZM2 8h12",
            Self::Open => "M8 10.5V2.5M4.75 5.5L8 2.25l3.25 3.25M2.5 10.5v3h11v-3",
        }
    }
}

/// Renders a symbol. It is hidden from screen readers, so the element around it needs a label.
pub fn icon(symbol: Symbol) -> Html {
    html! {
        <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
            <path d={symbol.path()} />
        </svg>
    }
}
