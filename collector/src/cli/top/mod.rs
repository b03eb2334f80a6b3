//! `vramscope top`: follows a running job's memory in the terminal.
//!
//! ```text
//! server ─► feed (a thread that asks once a second) ─► Scene ─► view (draws it)
//! ```

mod feed;
mod scene;
mod view;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::feed::Feed;
use self::scene::Scene;
use super::destination::server_to_use;
use super::push::ServerOptions;
use super::refuse;

/// The longest time between two looks at the keys and at what has arrived.
const LOOK: Duration = Duration::from_millis(100);

/// The options of `top`.
#[derive(Args, Debug)]
pub(super) struct Top {
    /// Name of a job, as `vramscope ls` shows it [default: the newest that runs]
    #[arg(value_name = "NAME")]
    job: Option<String>,
    /// Server [default: the variable VRAMSCOPE_TO, or your newest server on this machine]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

impl Top {
    /// Draws until a key ends it.
    pub(super) fn run(self) -> ExitCode {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return refuse("top draws on a terminal. For a list, type: vramscope ls");
        }
        match self.follow() {
            Ok(()) => ExitCode::SUCCESS,
            Err(sentence) => refuse(&sentence),
        }
    }

    fn follow(self) -> Result<(), String> {
        let (option, url) = server_to_use(self.to)?;
        let remote = self.server.remote(option, &url)?;
        let feed = Feed::start(remote, url, self.job)?;
        #[cfg(unix)]
        end_at_signals();
        let mut terminal = ratatui::try_init().map_err(|error| format!("The terminal can't be drawn on: {error}."))?;
        let drawn = draw_until_ended(&mut terminal, &feed);
        ratatui::restore();
        drawn.map_err(|error| format!("The terminal can't be drawn on: {error}."))
    }
}

/// Ends the program at the signals that ask for it, with the terminal as it was. In a thread of its own: reading keys from a terminal
/// that is gone does not end.
#[cfg(unix)]
fn end_at_signals() {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP]) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            // Fails if the terminal is gone.
            let _ = ratatui::try_restore();
            std::process::exit(128 + signal);
        }
    };
    // Without the thread, the signals would do nothing at all.
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

/// Draws what arrives, until a key ends it.
fn draw_until_ended(terminal: &mut DefaultTerminal, feed: &Feed) -> io::Result<()> {
    let mut scene = Scene::default();
    let mut is_new = true;
    loop {
        if let Some(newest) = feed.newest() {
            (scene, is_new) = (newest, true);
        }
        if std::mem::take(&mut is_new) {
            terminal.draw(|frame| view::draw(frame, &scene))?;
        }
        if !event::poll(LOOK)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match key {
                KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. } => return Ok(()),
                KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. } => return Ok(()),
                KeyEvent { code: KeyCode::Right | KeyCode::Down | KeyCode::Char('j' | 'l'), .. } => feed.show_other(1),
                KeyEvent { code: KeyCode::Left | KeyCode::Up | KeyCode::Char('k' | 'h'), .. } => feed.show_other(-1),
                _ => {}
            },
            Event::Resize(..) => is_new = true,
            _ => {}
        }
    }
}
