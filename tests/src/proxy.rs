//! A network that can be cut: a proxy between a program and a server.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;

/// The state of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Network {
    /// Bytes arrive.
    Up = 0,
    /// Bytes are held back while connections stay open, as when a cable is pulled.
    Silent = 1,
    /// Connections are closed, and so is every new one.
    Closed = 2,
}

/// The pause between two checks whether the network is up again.
const LOOK: Duration = Duration::from_millis(10);

/// A proxy on a port of its own. It runs until the process ends.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<AtomicU8>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Starts a proxy to a server.
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

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the state of the network.
    pub fn set(&self, network: Network) {
        self.network.store(network as u8, Ordering::Relaxed);
        if network == Network::Closed {
            for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // Fails if it is closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// Copies bytes in one direction until either end closes.
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
