//! A connection to the server, plain or encrypted, for two threads: one reads while the other writes.
//!
//! The state of TLS is behind a lock that is held while bytes are encrypted or decrypted, and never while the socket is
//! read or written. A blocked send therefore never keeps acknowledgements from being read. After the handshake only the
//! writer sends, so records leave in the order in which they were encrypted. The few that a reader causes (the answer to a
//! change of keys) go out with the writer's next bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::trust::wrap;

/// The bytes that are read from the socket at a time: a TLS record.
const READ_BYTES: usize = 16 << 10;

/// A connection. Its clones share it.
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Tls>,
}

/// The encryption of a connection, as one of its two threads sees it.
struct Tls {
    shared: Arc<Mutex<ClientConnection>>,
    /// Encrypted bytes from the socket; the range is not decrypted yet. Only the reader's are in use.
    received: Box<[u8]>,
    unread: Range<usize>,
    /// Encrypted bytes for the socket. Only the writer's are in use.
    records: Vec<u8>,
}

impl Tls {
    fn new(shared: Arc<Mutex<ClientConnection>>) -> Self {
        Self { shared, received: vec![0; READ_BYTES].into(), unread: 0..0, records: Vec::new() }
    }
}

/// A failed operation leaves the state as it was or ended, so it can be used after a thread has panicked.
fn lock(shared: &Mutex<ClientConnection>) -> MutexGuard<'_, ClientConnection> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// Uses the socket without encryption.
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self { socket, tls: None }
    }

    /// Encrypts the connection. The handshake must be complete after `time`. The socket's timeouts are those of the
    /// handshake afterwards.
    pub(super) fn secure(
        mut socket: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        time: Duration,
    ) -> io::Result<Self> {
        let deadline = Instant::now() + time;
        let late = || io::Error::new(ErrorKind::TimedOut, "the TLS handshake took too long");
        // A socket's timeout has one of two names, depending on the system.
        let timed = |error: io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => late(),
            _ => error,
        };
        let mut connection = ClientConnection::new(config, name).map_err(wrap)?;
        while connection.is_handshaking() || connection.wants_write() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            if connection.wants_write() {
                socket.set_write_timeout(Some(left))?;
                connection.write_tls(&mut socket).map_err(timed)?;
                continue;
            }
            socket.set_read_timeout(Some(left))?;
            if connection.read_tls(&mut socket).map_err(timed)? == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server closed the connection during the TLS handshake",
                ));
            }
            if let Err(error) = connection.process_new_packets() {
                // The server learns why, if the socket takes the bytes.
                let _ = connection.write_tls(&mut socket);
                return Err(wrap(error));
            }
        }
        Ok(Self { socket, tls: Some(Tls::new(Arc::new(Mutex::new(connection)))) })
    }

    /// Returns another owner of the connection. Of all owners, one may read and one may write.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let tls = self.tls.as_ref().map(|tls| Tls::new(Arc::clone(&tls.shared)));
        Ok(Self { socket: self.socket.try_clone()?, tls })
    }

    /// Sets how long a read may take.
    pub(super) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    /// Sets how long a write may take.
    pub(super) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_write_timeout(timeout)
    }

    /// Says that nothing more will be written.
    pub(super) fn end_writing(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            lock(&tls.shared).send_close_notify();
            tls.send(&mut self.socket)?;
        }
        self.socket.shutdown(Shutdown::Write)
    }
}

impl Tls {
    /// Sends what is encrypted.
    fn send(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        self.records.clear();
        let mut connection = lock(&self.shared);
        while connection.wants_write() {
            connection.write_tls(&mut self.records)?;
        }
        drop(connection);
        socket.write_all(&self.records)
    }

    fn read(&mut self, socket: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut connection = lock(&self.shared);
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            if self.unread.is_empty() {
                drop(connection);
                let count = socket.read(&mut self.received)?;
                self.unread = 0..count;
                connection = lock(&self.shared);
            }
            let mut bytes = self.received.get(self.unread.clone()).unwrap_or(&[]);
            // No bytes mean the end of the connection, which rustls learns in this way.
            self.unread.start += connection.read_tls(&mut bytes)?;
            connection.process_new_packets().map_err(wrap)?;
        }
    }

    fn write(&mut self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let count = lock(&self.shared).writer().write(bytes)?;
        self.send(socket)?;
        Ok(count)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write(&mut self.socket, bytes),
            None => self.socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use rcgen::{CertificateParams, KeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

    use super::super::trust::Trust;
    use super::*;

    /// Starts a server that hands its one connection to `serve`. Returns the client's stream.
    fn connected(
        version: &'static SupportedProtocolVersion,
        serve: impl FnOnce(StreamOwned<ServerConnection, TcpStream>) + Send + 'static,
    ) -> (Stream, thread::JoinHandle<()>) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["box".to_owned()]).unwrap().self_signed(&key).unwrap();
        let certificate = certificate.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(&[version]).unwrap().with_no_client_auth();
        let config = Arc::new(builder.with_single_cert(vec![certificate.clone()], key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            serve(StreamOwned::new(ServerConnection::new(config).unwrap(), socket));
        });
        let config = Trust::Exactly(certificate).config().unwrap();
        let name = ServerName::try_from("box").unwrap();
        (Stream::secure(socket, config, name, Duration::from_secs(20)).unwrap(), server)
    }

    #[test]
    fn a_blocked_write_does_not_keep_answers_from_being_read() {
        let (done, ended) = mpsc::channel::<()>();
        let (stream, server) = connected(&TLS13, move |mut stream| {
            let mut first = [0; 5];
            stream.read_exact(&mut first).unwrap();
            // It reads nothing more, but still answers.
            for _ in 0..100 {
                stream.write_all(b"answer").unwrap();
            }
            ended.recv().unwrap();
        });
        let (mut writer, mut reader) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        writer.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        reader.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (wrote, writes) = mpsc::channel();
        let blocked = thread::spawn(move || {
            while writer.write_all(&[7; 5]).and_then(|()| writer.write_all(&[7; 1 << 20])).is_ok() {
                wrote.send(()).unwrap();
            }
        });
        // Until the buffers of both sides are full.
        while writes.recv_timeout(Duration::from_millis(500)).is_ok() {}
        let mut answers = vec![0; 600];
        reader.read_exact(&mut answers).unwrap();
        assert!(answers == b"answer".repeat(100) && !blocked.is_finished());
        done.send(()).unwrap();
        server.join().unwrap();
        blocked.join().unwrap();
    }

    #[test]
    fn both_directions_carry_much_at_once_and_the_end_is_seen() {
        for version in [&TLS12, &TLS13] {
            carry_much(version);
        }
    }

    fn carry_much(version: &'static SupportedProtocolVersion) {
        const BYTES: usize = 8 << 20;
        let (stream, server) = connected(version, |mut stream| {
            let mut buffer = vec![0; 10_000];
            let mut total = 0;
            loop {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                assert!(buffer[..count].iter().enumerate().all(|(i, &byte)| byte == ((total + i) % 251) as u8));
                if total < BYTES / 2 && total + count >= BYTES / 2 {
                    // TLS 1.2 has no such message.
                    let _ = stream.conn.refresh_traffic_keys();
                }
                total += count;
                stream.write_all(&buffer[..count]).unwrap();
            }
            assert_eq!(total, BYTES);
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        });
        let mut writer = stream.try_clone().unwrap();
        let mut reader = stream;
        let sent: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let write = thread::spawn(move || {
            sent.chunks(77_777).for_each(|piece| writer.write_all(piece).unwrap());
            writer.end_writing().unwrap();
        });
        let mut echoed = Vec::new();
        reader.read_to_end(&mut echoed).unwrap();
        assert!(echoed == expected);
        write.join().unwrap();
        server.join().unwrap();
    }

    #[test]
    fn a_connection_that_is_cut_is_an_error_and_no_end() {
        let (mut stream, server) = connected(&TLS13, |mut stream| {
            stream.write_all(b"half").unwrap();
            stream.flush().unwrap();
        });
        server.join().unwrap();
        let mut bytes = Vec::new();
        let error = stream.read_to_end(&mut bytes).unwrap_err();
        assert_eq!((bytes.as_slice(), error.kind()), (&b"half"[..], ErrorKind::UnexpectedEof));
    }
}
