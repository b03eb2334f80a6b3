//! A network that can be cut: a proxy between a program and a server.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// What becomes of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Network {
    /// It arrives.
    Up = 0,
    /// It goes nowhere, and nobody is told: connections stay open, as when a cable is pulled.
    Silent = 1,
    /// Connections are closed, and new ones at once.
    Closed = 2,
}

/// How often a silent network looks whether it is up again.
const LOOK: Duration = Duration::from_millis(10);

/// A proxy on a port of its own. It ends with the process.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// To this server.
    pub fn to(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let network = Arc::new(AtomicU8::new(Network::Up as u8));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (state, streams) = (Arc::clone(&network), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if state.load(Ordering::Relaxed) == Network::Closed as u8 {
                    continue;
                }
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    let state = Arc::clone(&state);
                    thread::spawn(move || carry(from, to, &state));
                }
                streams.lock().unwrap_or_else(PoisonError::into_inner).extend([client, server]);
            }
        });
        Ok(Self { address, network, open })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the network is so.
    pub fn set(&self, network: Network) {
        self.network.store(network as u8, Ordering::Relaxed);
        if network == Network::Closed {
            for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // Closed already: all the better.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// Carries bytes one way until either end closes.
fn carry(mut from: TcpStream, mut to: TcpStream, network: &AtomicU8) {
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while network.load(Ordering::Relaxed) == Network::Silent as u8 {
            thread::sleep(LOOK);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
