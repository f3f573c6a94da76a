//! The library's part of a connection: the handshake.

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{CommonState, Error};

use crate::record::{HEADER, MAX_PLAINTEXT};
use crate::traffic::{KeySource, Traffic};

/// More than a record needs besides its plaintext, and a change of keys before it.
const OVERHEAD: usize = 256;
/// What a record of TLS 1.3 needs besides its plaintext: the header, the type and the tag.
const OVERHEAD_TLS13: usize = HEADER + 1 + 16;
/// Size of a record with EndOfEarlyData, a message without a body.
const END_OF_EARLY_DATA: usize = 4 + OVERHEAD_TLS13;

/// A connection whose handshake is carried out.
pub enum Library {
    /// Of a client.
    Client(UnbufferedClientConnection),
    /// Of a server.
    Server(UnbufferedServerConnection),
}

/// What the library gave.
#[derive(Debug, Default)]
pub struct Given {
    /// Plaintext: early data, and data that came with the end of the handshake.
    pub plaintext: Vec<u8>,
    /// Of a client: whether early data may be sent.
    pub early_room: bool,
    /// Of a server: whether early data have arrived.
    pub early_arrived: bool,
    /// Of a client: whether the server took early data. Only then do clients announce their end (RFC 8446, section 4.5).
    pub early_accepted: bool,
    /// Whether nothing more comes from the peer.
    pub ended: bool,
}

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Again,
    Blocked,
}

impl Library {
    /// What both sides have in common.
    pub fn common(&self) -> &CommonState {
        match self {
            Library::Client(of) => of,
            Library::Server(of) => of,
        }
    }

    /// Works on `incoming` until more has to arrive, and appends what has to be sent to `out`. Returns the number of bytes at the start
    /// of `incoming` that are used up, also if it fails.
    pub fn work(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        given: &mut Given,
    ) -> (usize, Result<(), Error>) {
        let mut used = 0;
        loop {
            let (discard, step) = self.step(&mut incoming[used..], out, given);
            used += discard;
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Blocked) => return (used, Ok(())),
                Err(error) => {
                    // The alert that explains the failure to the peer.
                    let _ = self.step(&mut incoming[used..], out, given);
                    return (used, Err(error));
                }
            }
        }
    }

    fn step(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        given: &mut Given,
    ) -> (usize, Result<Step, Error>) {
        match self {
            Library::Client(of) => {
                let UnbufferedStatus { discard, state } = of.process_tls_records(incoming);
                match state {
                    Ok(ConnectionState::TransmitTlsData(mut transmit)) => {
                        given.early_room = transmit.may_encrypt_early_data().is_some();
                        if given.early_room {
                            // The library leaves this state when the server has answered.
                            return (discard, Ok(Step::Blocked));
                        }
                        transmit.done();
                        (discard, Ok(Step::Again))
                    }
                    state => take(discard, state, out, given),
                }
            }
            Library::Server(of) => {
                let UnbufferedStatus { discard, state } = of.process_tls_records(incoming);
                match state {
                    Ok(ConnectionState::TransmitTlsData(transmit)) => {
                        transmit.done();
                        (discard, Ok(Step::Again))
                    }
                    Ok(ConnectionState::ReadEarlyData(mut early)) => {
                        let mut more = 0;
                        while let Some(record) = early.next_record() {
                            match record {
                                Ok(record) => {
                                    given.plaintext.extend_from_slice(record.payload);
                                    more += record.discard;
                                }
                                Err(error) => return (discard + more, Err(error)),
                            }
                        }
                        given.early_arrived = true;
                        (discard + more, Ok(Step::Again))
                    }
                    state => take(discard, state, out, given),
                }
            }
        }
    }

    /// Encrypts the first bytes of `data`, if the state of the handshake allows that, and appends the record to `out`. Returns the number
    /// of bytes, and whether they are early data of a client. `incoming` is what waits for the next bytes of the peer.
    pub fn write(&mut self, data: &[u8], incoming: &mut [u8], out: &mut Vec<u8>) -> (usize, bool) {
        let data = &data[..data.len().min(MAX_PLAINTEXT)];
        match self {
            Library::Client(of) => match of.process_tls_records(incoming).state {
                Ok(ConnectionState::TransmitTlsData(mut transmit)) => {
                    let Some(mut early) = transmit.may_encrypt_early_data() else { return (0, false) };
                    let size = encrypt(out, |room| early.encrypt(data, room).ok());
                    (size.saturating_sub(OVERHEAD_TLS13), true)
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let size = encrypt(out, |room| traffic.encrypt(data, room).ok());
                    (if size > 0 { data.len() } else { 0 }, false)
                }
                _ => (0, false),
            },
            Library::Server(of) => match of.process_tls_records(incoming).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let size = encrypt(out, |room| traffic.encrypt(data, room).ok());
                    (if size > 0 { data.len() } else { 0 }, false)
                }
                _ => (0, false),
            },
        }
    }

    /// Appends the announcement that nothing more comes from this side to `out`, if this side may already send data. Before that,
    /// whoever gives up a handshake just closes the connection.
    pub fn close(&mut self, incoming: &mut [u8], out: &mut Vec<u8>) {
        match self {
            Library::Client(of) => {
                if let Ok(ConnectionState::WriteTraffic(mut traffic)) = of.process_tls_records(incoming).state
                {
                    encrypt(out, |room| traffic.queue_close_notify(room).ok());
                }
            }
            Library::Server(of) => {
                if let Ok(ConnectionState::WriteTraffic(mut traffic)) = of.process_tls_records(incoming).state
                {
                    encrypt(out, |room| traffic.queue_close_notify(room).ok());
                }
            }
        }
    }

    /// Hands over the keys when the handshake is complete.
    ///
    /// # Errors
    /// If the library refuses.
    pub fn into_traffic(self) -> Result<Traffic, Error> {
        match self {
            Library::Client(of) => {
                let (secrets, source) = of.dangerous_into_kernel_connection()?;
                Traffic::new(KeySource::Client(source), &secrets)
            }
            Library::Server(of) => {
                let (secrets, source) = of.dangerous_into_kernel_connection()?;
                Traffic::new(KeySource::Server(source), &secrets)
            }
        }
    }
}

/// What both sides do in a state.
fn take<Data>(
    mut discard: usize,
    state: Result<ConnectionState<'_, '_, Data>, Error>,
    out: &mut Vec<u8>,
    given: &mut Given,
) -> (usize, Result<Step, Error>) {
    match state {
        Ok(ConnectionState::EncodeTlsData(mut record)) => {
            let start = out.len();
            if let Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) =
                record.encode(&mut [])
            {
                out.resize(start + required_size, 0);
                if record.encode(&mut out[start..]).is_err() {
                    out.truncate(start);
                }
                let is_encrypted = out.get(start) == Some(&crate::record::kind::DATA);
                given.early_accepted |= is_encrypted && required_size == END_OF_EARLY_DATA;
            }
        }
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        given.plaintext.extend_from_slice(record.payload);
                        discard += record.discard;
                    }
                    Err(error) => return (discard, Err(error)),
                }
            }
        }
        Ok(ConnectionState::PeerClosed) => given.ended = true,
        Ok(_) => return (discard, Ok(Step::Blocked)),
        Err(error) => return (discard, Err(error)),
    }
    (discard, Ok(Step::Again))
}

/// Appends what `encrypt` writes, which returns the number of bytes, to `out`.
fn encrypt(out: &mut Vec<u8>, encrypt: impl FnOnce(&mut [u8]) -> Option<usize>) -> usize {
    let start = out.len();
    out.resize(start + MAX_PLAINTEXT + OVERHEAD, 0);
    let size = encrypt(&mut out[start..]).unwrap_or(0);
    out.truncate(start + size);
    size
}
