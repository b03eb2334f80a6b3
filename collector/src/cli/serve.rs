//! `vramscope serve`: the page, on this machine.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use tokio::net::TcpListener;

use crate::server;

/// What `serve` is told.
#[derive(Args, Debug)]
pub(super) struct Serve {
    /// Where to listen; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
}

impl Serve {
    /// Serves until Ctrl-C.
    pub(super) fn run(self) -> ExitCode {
        match self.serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(sentence) => {
                eprintln!("{sentence}");
                ExitCode::FAILURE
            }
        }
    }

    fn serve(self) -> Result<(), String> {
        let address = self.listen;
        // Without a token, whoever reaches the port would see every trace that is shown there.
        if !address.ip().is_loopback() {
            return Err(format!(
                "Vramscope listens on this machine only for now, and {address} can be reached from others. \
                 Use --listen 127.0.0.1:{}, and an SSH tunnel to see it from elsewhere.",
                address.port()
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("The server could not start: {error}."))?;
        runtime.block_on(async {
            let listener = TcpListener::bind(address).await.map_err(|error| refused(address, &error))?;
            let address = listener.local_addr().map_err(|error| refused(address, &error))?;
            println!("Vramscope is at http://{address}/ (Ctrl-C stops it)");
            if !server::has_page() {
                eprintln!("This build has no page: it was built with VRAMSCOPE_PAGE=skip.");
            }
            server::run(listener).await;
            Ok(())
        })
    }
}

/// Why `address` could not be listened on, and what to do next.
fn refused(address: SocketAddr, error: &io::Error) -> String {
    let other = SocketAddr::new(address.ip(), if address.port() == u16::MAX { 7070 } else { address.port() + 1 });
    match error.kind() {
        ErrorKind::AddrInUse => {
            format!("Port {} is taken. Choose another, for example: vramscope --listen {other}", address.port())
        }
        ErrorKind::PermissionDenied => {
            format!(
                "Port {} needs more rights. Choose one above 1023: vramscope --listen 127.0.0.1:7070",
                address.port()
            )
        }
        _ => {
            format!("Listening on {address} failed: {error}. Choose another address: vramscope --listen 127.0.0.1:7070")
        }
    }
}
