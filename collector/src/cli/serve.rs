//! `vramscope serve`: serves the page and the sessions of running jobs.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use trace::limits::{ServerLimits, ShareLimits};

use tokio::sync::watch;

use super::listening::{Listening, TOKEN, address, host_name, needs_token, refused};
use super::log::LogOptions;
use super::page_address::offered;
use super::{message, print};
use crate::access::{self, Access, Keys};
use crate::announcement::{Announced, Announcement, state_folder};
use crate::assets;
use crate::bus::LocalBus;
use crate::ingest::{Retention, Sessions};
use crate::server::{self, App, Baselines, Embedding, Hosts, Network, Proxies, Tls};
use crate::shares::{Shares, Terms};
use crate::size;
use crate::store::SegmentStore;

/// The options of `serve`.
#[derive(Args, Debug)]
pub(super) struct Serve {
    /// Address to listen on; port 0 selects a free port. Any address but loopback requires a token [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Folder for recorded sessions [default: vramscope in the user's data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Object store for sealed segments, such as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX; credentials
    /// come from the usual variables (AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME …)
    /// [default: the folder of --data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Days to keep a session
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    keep_days: u32,
    /// Disk space for sessions. Older ones are deleted to make room, of the token and host that store most first; one that is
    /// larger than this is not kept
    #[arg(long, value_name = "SIZE", default_value = "20GiB", value_parser = kept)]
    keep_bytes: u64,
    /// Disk space for traces that are shared by links
    #[arg(long, value_name = "SIZE", default_value = "5GiB", value_parser = kept)]
    share_bytes: u64,
    /// Most days until a shared link expires [default: no limit; a link expires after 30 days unless its maker says otherwise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    share_days: Option<u32>,
    /// Allow links that open without a token, for everybody who reaches this server
    #[arg(long)]
    public_links: bool,
    /// File with the token that jobs and viewers must present [default: the variable VRAMSCOPE_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with several tokens, each with a name, roles, an expiry and quotas; read again when it changes. `vramscope token
    /// new` makes its lines
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    tokens: Option<PathBuf>,
    /// Without a token, answer every user of this machine, and not only the one who starts the server
    #[arg(long)]
    allow_other_users: bool,
    /// Additional host name that the server answers to; can be repeated
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    host: Vec<String>,
    /// File with the certificate for TLS in PEM format, its chain included; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the certificate's private key in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Addresses or networks of proxies whose headers name the client, such as 127.0.0.1,10.0.0.0/8
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    behind_proxy: Vec<Network>,
    /// Site that may show the page in a frame, such as https://ci.example.org; can be repeated [default: none]
    #[arg(long, value_name = "ORIGIN", value_parser = Embedding::origin)]
    embed_origin: Vec<String>,
    /// Leave the terminal, and take another port if the usual one is taken: `vramscope watch` starts such a server
    #[arg(long, hide = true)]
    background: bool,
    #[command(flatten)]
    log: LogOptions,
}

/// The address of a server without `--listen`.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7070);

/// The variable that makes a server behave as where the system does not tell users apart: a test sets it.
const BLIND: &str = "VRAMSCOPE_USERS_UNKNOWN";
/// Bytes of a file with one token.
const TOKEN_BYTES: u64 = 64 << 10;
/// Threads for sockets. Tasks that wait for a disk have their own.
const THREADS: usize = 2;

/// Reads the limit on disk space.
fn kept(text: &str) -> Result<u64, String> {
    size::disk_space(text).map_err(|what| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { format!("add a unit, such as {text}GiB") } else { format!("it is not {what}") }
    })
}

/// What a server keeps in its folder.
struct Opened {
    sessions: Sessions,
    shares: Shares,
    baselines: Baselines,
    /// Ends, with a sentence for people, when the object store can't be used any more, or never.
    refused: BoxFuture<'static, String>,
}

impl Serve {
    /// Serves until Ctrl-C.
    pub(super) fn run(self) -> ExitCode {
        self.run_showing(&[], |_| {})
    }

    /// Serves without any option, as [`Self::run`] and [`Self::run_showing`] do.
    pub(super) fn plain() -> Self {
        #[derive(clap::Parser)]
        struct Defaults {
            #[command(flatten)]
            serve: Serve,
        }
        let no_arguments: [&str; 1] = ["vramscope"];
        <Defaults as clap::Parser>::parse_from(no_arguments).serve
    }

    /// Serves until Ctrl-C, and shows files of this machine: `opened` gets the address that opens them.
    pub(super) fn run_showing(self, files: &[PathBuf], opened: impl FnOnce(&str)) -> ExitCode {
        match self.serve(files, opened) {
            Ok(()) => ExitCode::SUCCESS,
            Err(sentence) => super::refuse(&sentence),
        }
    }

    fn serve(self, files: &[PathBuf], opened: impl FnOnce(&str)) -> Result<(), String> {
        #[cfg(unix)]
        if self.background {
            // Signals of the terminal are for the job, and the server outlives it. Fails if this leads a group already.
            let _ = rustix::process::setsid();
        }
        self.log.install()?;
        let address = self.listen.unwrap_or(USUAL);
        let access = Arc::new(self.access()?);
        // Without a token, every machine that reaches the port could see every trace.
        if !address.ip().is_loopback() && !access.was_given_tokens() {
            return Err(format!(
                "{} Or use --listen 127.0.0.1:{} for this machine only, and reach it from elsewhere through an SSH tunnel: \
                 whoever reaches that tunnel may then use the server.",
                needs_token(&address.to_string()),
                address.port()
            ));
        }
        // A proxy makes a server on loopback reachable too.
        if !self.behind_proxy.is_empty() && !access.was_given_tokens() {
            return Err(needs_token("A server behind a proxy"));
        }
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::load(certificate, key)?),
            _ => None,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .enable_all()
            .build()
            .map_err(|error| format!("The server could not start: {error}."))?;
        let bound = {
            let _context = runtime.enter();
            let listen = |address| server::listen(address, &ServerLimits::default());
            // Whoever opens a file or watches a job doesn't care for the port.
            let is_any = self.listen.is_none() && (self.background || !files.is_empty());
            listen(address).or_else(|error| match error.kind() {
                ErrorKind::AddrInUse if is_any => listen(SocketAddr::new(address.ip(), 0)),
                _ => Err(error),
            })
        };
        let listener = bound.map_err(|error| refused(address, &error))?;
        let address = listener.local_addr().map_err(|error| refused(address, &error))?;
        let Opened { sessions, shares, baselines, refused } = self.sessions(&access)?;
        runtime.spawn(end_in_time(sessions.stopping(), ServerLimits::default()));
        let ended = runtime.block_on(async {
            let (is_encrypted, is_behind_proxy) = (tls.is_some(), !self.behind_proxy.is_empty());
            let listening = Listening { address, hosts: &self.host, is_encrypted, is_behind_proxy };
            if let Some(warning) = listening.warning() {
                tracing::warn!("{warning}");
            }
            // A server in the background writes to a log. Whoever started it prints a link.
            let token = access.keys().and_then(|keys| keys.token.as_deref());
            let link = token.filter(|_| !self.background).map(|token| listening.link(token));
            // In one piece: whoever reads the first line may not stay for the second.
            let lines = format!("{}\n{}", listening.greeting(&access.describe()), link.unwrap_or_default());
            print(|out| out.write_all(lines.as_bytes()));
            if !assets::has_page() {
                tracing::warn!("This build has no page: it was built with VRAMSCOPE_PAGE=skip.");
            }
            let app = App::new(sessions, Hosts::new(address, &self.host)).at(address);
            let app =
                app.sharing(shares).keeping(baselines).encrypted(tls).behind(Proxies::new(self.behind_proxy.clone()));
            let app = app.framed_by(Embedding::by(self.embed_origin.clone()));
            if !files.is_empty() {
                let shown = offered(&app.files, files, address, token)?;
                print(|out| writeln!(out, "Opened at {shown}"));
                opened(&shown);
            }
            let is_plain =
                !is_encrypted && !is_behind_proxy && !access.was_given_tokens() && address.ip().is_loopback();
            let announced = is_plain.then(|| announce(address, access.keys(), self.background));
            let _announced = match announced.transpose() {
                // Nobody would ever find it.
                Err(sentence) if self.background => return Err(sentence),
                Err(sentence) => {
                    message::note(&format!("Other programs can't find this server. {sentence}"));
                    None
                }
                Ok(announced) => announced.flatten(),
            };
            server::run(listener, app, refused).await
        });
        // A download that its client does not read must not keep the program running.
        runtime.shutdown_background();
        ended
    }

    /// Opens what the folder keeps.
    fn sessions(&self, access: &Arc<Access>) -> Result<Opened, String> {
        let folder = self.data.clone().unwrap_or_else(default_folder);
        tracing::debug!(folder = &*folder.to_string_lossy(), "data folder");
        let limits = ServerLimits::default();
        let (store, refused) = match &self.store {
            Some(url) => SegmentStore::start_with_objects(&folder, url, std::env::vars(), self.keep_bytes)?,
            None => (SegmentStore::open(&folder, self.keep_bytes)?, future::pending().boxed()),
        };
        let store = Arc::new(store);
        let terms = Terms {
            bytes: self.share_bytes,
            most_seconds: self.share_days.map(|days| u64::from(days) * 86_400),
            allows_public: self.public_links,
        };
        let baselines = Baselines::new(store.shared().1);
        let shares = Shares::open(store.shared(), ShareLimits::default(), terms);
        let bus = Arc::new(LocalBus::new(limits.viewer_bytes));
        let sessions =
            Sessions::open(store, bus, limits, Retention::new(self.keep_days, self.keep_bytes), Arc::clone(access));
        let sessions =
            sessions.map_err(|error| format!("The sessions in {} can't be read: {error}.", folder.display()))?;
        Ok(Opened { sessions, shares, baselines, refused })
    }

    /// Returns who may use the server.
    fn access(&self) -> Result<Access, String> {
        if let Some(file) = &self.tokens {
            let shown = file.display();
            return Access::with_file(file).map_err(|sentence| match file.try_exists() {
                Ok(false) => format!(
                    "The tokens file of --tokens, {shown}, does not exist. Make it with: vramscope token new --name NAME \
                     --role ROLE >> {shown} && chmod 600 {shown}"
                ),
                _ => format!("--tokens: {sentence}"),
            });
        }
        match self.token()? {
            Some(token) => Access::with_token(&token),
            None if self.allow_other_users => Ok(Access::default()),
            None if std::env::var_os(BLIND).is_some() => Access::for_this_user_by_token(),
            None => Access::for_this_user(self.listen.unwrap_or(USUAL).ip()),
        }
    }

    /// Reads the token, if there is one.
    fn token(&self) -> Result<Option<String>, String> {
        let (token, place) = match &self.token_file {
            Some(file) => {
                let read = access::read_private(file, TOKEN_BYTES);
                (read.map_err(|sentence| format!("--token-file: {sentence}"))?, file.display().to_string())
            }
            None => match std::env::var(TOKEN) {
                Ok(token) if !token.is_empty() => (token, TOKEN.to_owned()),
                _ => return Ok(None),
            },
        };
        let token = token.trim();
        access::check_token(token).map_err(|wrong| format!("The token in {place} is invalid: it {wrong}."))?;
        Ok(Some(token.to_owned()))
    }
}

/// Ends the program when it was asked to stop and something, a disk that hangs, keeps it. What was acknowledged is stored.
async fn end_in_time(mut stopping: watch::Receiver<bool>, limits: ServerLimits) {
    if stopping.wait_for(|is_stopping| *is_stopping).await.is_ok() {
        // Three times what each part of a stop may take.
        let time = Duration::from_secs(3 * limits.drain_seconds);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            tracing::warn!("the server did not end in time, and is ended; the next start seals what is open");
            std::process::exit(0);
        });
    }
}

/// Lets other programs of this user find the server, for as long as the value lives. Returns a sentence for people on failure.
fn announce(address: SocketAddr, keys: Option<&Keys>, is_background: bool) -> Result<Option<Announced>, String> {
    state_folder().map(|state| Announcement::publish(&state, address, keys, is_background)).transpose()
}

/// Returns the default folder for sessions.
pub(super) fn default_folder() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // The XDG standard demands an absolute path, and that any other is ignored.
    let data = folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| folder("HOME").map(|home| home.join(".local/share")));
    data.map_or_else(|| PathBuf::from("vramscope-data"), |data| data.join("vramscope"))
}
