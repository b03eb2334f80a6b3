//! Which user of this machine is at the other end of a connection.
//!
//! A connection on loopback has both of its ends in one table of the system. On Linux, `/proc/net/tcp` and `/proc/net/tcp6`
//! list each end with the user who opened it, so the server looks for the row of the client's end. It does so once for each
//! connection, when the first request that needs it arrives.
//!
//! Only a row that a process still holds open counts. The row of an end that was closed belongs to no process and names
//! the user 0: a stranger who sends a request and closes at once would pass for the administrator. For the same reason a
//! missing row counts as a stranger's. Whether the table can be relied on is found out at the start, by a connection of the
//! server to itself: where it can't (other systems, some sandboxes), every request needs a token.
//!
//! The user who holds the other end is not always the one who asks: `ssh -R` and `ssh -L`, `kubectl port-forward`, an editor
//! that forwards ports, a proxy and WSL's relay hold it for others.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};

/// The two ends of a connection, and what was found out about them.
#[derive(Clone, Debug)]
pub struct PeerSocket {
    ends: Option<Ends>,
    is_let_in: Arc<OnceLock<bool>>,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

impl PeerSocket {
    /// Returns the ends of a connection that the server accepted.
    pub fn of(stream: &tokio::net::TcpStream) -> Self {
        // Fails if the client has gone.
        let ends = stream.peer_addr().ok().zip(stream.local_addr().ok());
        Self { ends: ends.map(|(client, server)| Ends { client, server }), is_let_in: Arc::default() }
    }
}

/// The users who are let in: the one who runs this process, and the administrator, who can read everything anyway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Users {
    own: u32,
}

/// The number of the administrator.
const ROOT: u32 = 0;
/// How often a row is looked for. A table that changes while it is read may leave out a row.
const LOOKS: usize = 3;

impl Users {
    /// Returns the users who are let in if the system tells whose a connection to the address `listen` is.
    pub(super) fn detect(listen: IpAddr) -> Option<Self> {
        let users = Self { own: table::own_user()? };
        let listener = TcpListener::bind((listen, 0)).ok()?;
        let client = std::net::TcpStream::connect(listener.local_addr().ok()?).ok()?;
        let ends = Ends { client: client.local_addr().ok()?, server: client.peer_addr().ok()? };
        (table::user_of(ends) == Some(users.own)).then_some(users)
    }

    /// Whether one of the users is at the other end of a connection. Reads a file of the system the first time.
    pub(super) fn has(self, socket: &PeerSocket) -> bool {
        let look = || {
            let ends = socket.ends?;
            (0..LOOKS).find_map(|_| table::user_of(ends))
        };
        *socket.is_let_in.get_or_init(|| look().is_some_and(|user| user == self.own || user == ROOT))
    }
}

#[cfg(target_os = "linux")]
mod table {
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::net::{IpAddr, SocketAddr};

    use super::Ends;

    /// Bytes of a table that are read: some 400,000 connections.
    const TABLE_BYTES: u64 = 64 << 20;
    /// Bytes that are read at once.
    const READ_BYTES: usize = 64 << 10;

    /// Returns the user as whom this process acts; `None` if others have the same number.
    pub(super) fn own_user() -> Option<u32> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        // The real, the effective, the saved and the file system's user.
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let own = users.split_whitespace().nth(1)?.parse().ok()?;
        // In a container with users of its own, this number stands for every user from outside of it.
        let shared = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        (shared.trim().parse() != Ok(own)).then_some(own)
    }

    /// Returns the user of a connection's client; `None` if the table has no row of an open socket for it.
    pub(super) fn user_of(ends: Ends) -> Option<u32> {
        // A program that uses sockets of IPv6 for everything has its row in the other table.
        let mapped = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
            IpAddr::V6(_) => address,
        };
        let in_6 = Ends { client: mapped(ends.client), server: mapped(ends.server) };
        let first = if ends.client.is_ipv4() { user_in("/proc/net/tcp", ends) } else { None };
        first.or_else(|| user_in("/proc/net/tcp6", in_6))
    }

    fn user_in(path: &str, ends: Ends) -> Option<u32> {
        user_of_row(BufReader::with_capacity(READ_BYTES, File::open(path).ok()?.take(TABLE_BYTES)), ends)
    }

    /// Reads a table up to the row of a connection's client.
    pub(super) fn user_of_row(mut table: impl BufRead, ends: Ends) -> Option<u32> {
        let (client, server) = (written(ends.client), written(ends.server));
        let mut line = String::new();
        loop {
            line.clear();
            if table.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let mut fields = line.split_ascii_whitespace().skip(1);
            if fields.next() == Some(&*client) && fields.next() == Some(&*server) {
                // State, queues, timer and retransmissions come before the user; a timeout and the socket's number after it.
                let user = fields.nth(4)?.parse().ok()?;
                let is_open = fields.nth(1)? != "0";
                return is_open.then_some(user);
            }
        }
    }

    /// Returns an address as the tables write it: each word of four bytes as a number of this machine, then the port.
    fn written(address: SocketAddr) -> String {
        let words = |octets: &[u8]| -> String {
            let words = octets.as_chunks::<4>().0;
            words.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect()
        };
        let ip = match address.ip() {
            IpAddr::V4(ip) => words(&ip.octets()),
            IpAddr::V6(ip) => words(&ip.octets()),
        };
        format!("{ip}:{:04X}", address.port())
    }
}

/// Other systems tell nothing about the other end of a connection without code of their own.
#[cfg(not(target_os = "linux"))]
mod table {
    use super::Ends;

    pub(super) fn own_user() -> Option<u32> {
        None
    }

    pub(super) fn user_of(_: Ends) -> Option<u32> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};

    use super::*;

    /// A table as a machine with the smaller end first writes it.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 71001 1 0 100 0 0 10 0
   1: 0100007F:1B9E 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 71002 1 0 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1B9E 01 00000000:00000000 02:000A2F4E 00000000  1001        0 71003 2 0 20 4 30 10 -1
   3: 0100007F:C351 0100007F:1B9E 06 00000000:00000000 03:00001770 00000000     0        0 0 3 0
   4: 0100007F:C352 0100007F:1B9E 05 00000000:00000000 00:00000000 00000000  1002        0 71004 1 0 20 4 30 10 -1
   5: 0100007F:C353 0100007F:1B9E 01";

    #[cfg(target_endian = "little")]
    #[test]
    fn the_row_of_an_open_client_names_its_user() {
        let server: SocketAddr = "127.0.0.1:7070".parse().unwrap();
        for (port, want) in [
            (50_000, Some(1001)),
            // Closed: it is nobody's.
            (50_001, None),
            // It has sent everything and still reads.
            (50_002, Some(1002)),
            (50_003, None),
            (50_004, None),
        ] {
            let ends = Ends { client: SocketAddr::new(server.ip(), port), server };
            assert_eq!(table::user_of_row(TABLE.as_bytes(), ends), want, "{port}");
        }
    }

    #[test]
    fn a_connection_of_this_process_is_its_users_until_it_is_closed() {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let Ok(listener) = TcpListener::bind((ip, 0)) else {
                println!("skipped: {ip} is not available");
                continue;
            };
            let users = Users::detect(ip).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_server, address) = listener.accept().unwrap();
            let ends = Ends { client: address, server: listener.local_addr().unwrap() };
            let socket = || PeerSocket { ends: Some(ends), is_let_in: Arc::default() };
            let known = socket();
            assert!(users.has(&known), "{ip}");
            assert_eq!(Users { own: users.own + 1 }.has(&socket()), users.own == ROOT, "{ip}");
            drop(client);
            assert!(!users.has(&socket()), "{ip}: the end that was closed");
            assert!(users.has(&known), "{ip}: the table is read once for each connection");
        }
    }
}
