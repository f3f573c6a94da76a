//! The bus on NATS: core messages, and files in the object store of JetStream.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::object_store::{Config, ObjectInfo};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, object_store::ObjectStore};
use async_nats::{Client, ConnectOptions, StatusCode, Subscriber};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::future::join_all;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{BusMessage, BusOptions};
use crate::error::{FleetError, Result};

/// How long a server may take to answer when files are stored.
const STORE_PATIENCE: Duration = Duration::from_secs(8);
/// How long a server may take to make a bucket.
const BUCKET_PATIENCE: Duration = Duration::from_secs(3);
/// Files of a run that nobody removes are kept by the server for so long.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a server may take to answer with a part of a file, before another server is asked.
const PART_PATIENCE: Duration = Duration::from_secs(2);
/// How often a part of a file is asked for.
const PART_ATTEMPTS: usize = 5;
/// The pause between two questions for a part of a file that was refused at once.
const PART_PAUSE: Duration = Duration::from_millis(200);
/// The port of servers whose address has none.
const PORT: u16 = 4222;
/// How long a server may take to accept a connection before it counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// The longest pause between attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A connection to NATS, which is made again whenever it is lost.
#[derive(Clone, Debug)]
pub struct NatsBus {
    client: Client,
    /// The servers that the user has named, as `host:port`.
    places: Vec<String>,
}

fn nats(error: impl std::fmt::Display) -> FleetError {
    FleetError::Nats(error.to_string())
}

impl NatsBus {
    /// Connects. If `patient`, the first connection is awaited for as long as it takes.
    ///
    /// # Errors
    /// If no server can be reached, or it refuses the credentials.
    pub async fn connect(options: &BusOptions, patient: bool) -> Result<NatsBus> {
        let mut connect = ConnectOptions::new()
            .name(&options.client)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(|attempts| match attempts {
                0 | 1 => Duration::ZERO,
                many => LONGEST_PAUSE.min(Duration::from_millis(50 * many as u64)),
            });
        if patient {
            connect = connect.retry_on_initial_connect();
        }
        if let Some(creds) = &options.creds {
            connect = connect.credentials_file(creds).await.map_err(FleetError::file(creds))?;
        }
        if let Some(authorities) = &options.tls_ca {
            connect = connect.add_root_certificates(authorities.clone()).require_tls(true);
        }
        if let (Some(cert), Some(key)) = (&options.tls_cert, &options.tls_key) {
            connect = connect.add_client_certificate(cert.clone(), key.clone()).require_tls(true);
        }
        // The client does not use those in addresses.
        match options.user() {
            Some((token, "")) => connect = connect.token(token.to_owned()),
            Some((user, password)) => {
                connect = connect.user_and_password(user.to_owned(), password.to_owned())
            }
            None => {}
        }
        let servers: Vec<String> = options.servers().map(|server| server.plain).collect();
        let places = servers.iter().map(|server| place_of(server)).collect();
        let client = connect.connect(servers).await.map_err(|error| nats(causes(&error)))?;
        Ok(NatsBus { client, places })
    }

    /// How often the connection was made.
    pub fn connections(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Which of the servers that the user has named accept no connections, for people; `None` if all do.
    pub async fn lost_servers(&self) -> Option<String> {
        let tried = self.places.iter().map(|place| timeout(LOST_AFTER, TcpStream::connect(place)));
        let found = join_all(tried).await;
        let lost = self.places.iter().zip(found).filter(|(_, found)| !matches!(found, Ok(Ok(_))));
        let lost: Vec<&str> = lost.map(|(place, _)| place.as_str()).collect();
        let all = self.places.len();
        let cluster = match (all, 2 * lost.len() >= all) {
            (3.., true) => ", and a cluster stores files only with more than half of its servers",
            _ => "",
        };
        let of = if all > 1 { format!("{} of {all} servers", lost.len()) } else { "the server".to_owned() };
        (!lost.is_empty()).then(|| format!("{of} of NATS cannot be reached ({}){cluster}", lost.join(", ")))
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The server that this process is connected to.
    pub fn server(&self) -> String {
        self.client
            .try_server_info()
            .map_or_else(|| "no server".to_owned(), |info| format!("{}:{}", info.host, info.port))
    }

    /// A new subject for answers.
    pub fn new_inbox(&self) -> String {
        self.client.new_inbox()
    }

    /// Publishes a message. Without a connection, it is lost: states are published again.
    pub async fn publish(&self, subject: String, reply: Option<String>, bytes: Vec<u8>) {
        if !self.is_connected() {
            return;
        }
        // The client refuses only what is too long or closed for good.
        let _ = match reply {
            Some(reply) => self.client.publish_with_reply(subject, reply, bytes.into()).await,
            None => self.client.publish(subject, bytes.into()).await,
        };
        let _ = self.client.flush().await;
    }

    /// Receives the messages of a subject.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn subscribe(&self, subject: String) -> Result<Subscriber> {
        let subscriber = self.client.subscribe(subject).await.map_err(nats)?;
        // Without a connection, the subscription waits for one.
        if self.is_connected() {
            self.client.flush().await.map_err(nats)?;
        }
        Ok(subscriber)
    }

    /// Makes a bucket for files, unless it exists. In a cluster of three or more servers, it is there as long as two of them are.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn make_bucket(&self, bucket: &str) -> Result<()> {
        let mut store = self.store();
        // To make one needs the leader of the cluster, which may just have been lost: until there is another one, nobody answers.
        store.set_timeout(BUCKET_PATIENCE);
        if store.get_object_store(bucket).await.is_ok() {
            return Ok(());
        }
        let servers = self.client.try_server_info().map_or(0, |info| info.connect_urls.len());
        let config = |num_replicas| Config {
            bucket: bucket.to_owned(),
            max_age: KEPT,
            num_replicas,
            ..Config::default()
        };
        if servers >= 3 && store.create_object_store(config(3)).await.is_ok() {
            return Ok(());
        }
        match store.create_object_store(config(1)).await {
            Ok(_) => Ok(()),
            Err(error) if store.get_object_store(bucket).await.is_ok() => drop_error(error),
            Err(error) => Err(FleetError::Nats(format!(
                "the server stores no files ({}): start it with JetStream (nats-server -js); a cluster stores some as soon as most of its servers \
                 answer",
                causes(&error)
            ))),
        }
    }

    /// Removes a bucket with all files.
    pub async fn remove_bucket(&self, bucket: &str) {
        // The server removes it after a day anyway.
        let _ = self.store().delete_object_store(bucket).await;
    }

    /// Stores a file, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or the server refuses it.
    pub async fn put_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let bucket = self.bucket(bucket).await?;
        let built_in = path.to_str().and_then(polygraph_assets::builtin);
        let stored = match built_in {
            Some(text) => bucket.put(object, &mut text.map_err(FleetError::file(path))?.as_bytes()).await,
            None => {
                let mut file = File::open(path).await.map_err(FleetError::file(path))?;
                bucket.put(object, &mut file).await
            }
        };
        let stored = stored.map_err(|error| nats(causes(&error)))?;
        Ok(stored.size as u64)
    }

    /// Fetches a file, and returns its size in bytes. Its digest is checked.
    ///
    /// Each part is a question of its own, which any server with a copy of the bucket can answer. The reader of the library needs a
    /// consumer instead. A cluster places this on one server, for minutes perhaps on a server that has just been lost, and then nobody
    /// answers.
    ///
    /// # Errors
    /// If the file is not there, is damaged, or cannot be written.
    pub async fn get_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let mut store = self.store();
        store.set_timeout(PART_PATIENCE);
        let stream =
            store.get_stream_no_info(format!("OBJ_{bucket}")).await.map_err(|error| nats(causes(&error)))?;
        let about =
            part(&stream, &format!("$O.{bucket}.M.{}", URL_SAFE.encode(object)), PartChoice::Last).await?;
        let info: ObjectInfo = serde_json::from_slice(&about.payload).map_err(nats)?;
        if info.deleted {
            return Err(FleetError::Nats(format!("{object} was removed from the store")));
        }
        let subject = format!("$O.{bucket}.C.{}", info.nuid);
        let mut file = File::create(path).await.map_err(FleetError::file(path))?;
        let (mut digest, mut copied, mut next) = (Sha256::new(), 0, 1);
        for _ in 0..info.chunks {
            let piece = part(&stream, &subject, PartChoice::From(next)).await?;
            next = piece.sequence + 1;
            digest.update(&piece.payload);
            file.write_all(&piece.payload).await.map_err(FleetError::file(path))?;
            copied += piece.payload.len() as u64;
        }
        file.flush().await.map_err(FleetError::file(path))?;
        let found = format!("SHA-256={}", URL_SAFE.encode(digest.finalize()));
        match info.digest {
            Some(stored) if stored == found => Ok(copied),
            _ => Err(FleetError::Nats(format!("the store returned {object} damaged"))),
        }
    }

    /// Removes a file from a bucket.
    pub async fn remove_file(&self, bucket: &str, object: &str) {
        if let Ok(bucket) = self.bucket(bucket).await {
            // It goes with the bucket anyway.
            let _ = bucket.delete(object).await;
        }
    }

    fn store(&self) -> jetstream::Context {
        let mut store = jetstream::new(self.client.clone());
        store.set_timeout(STORE_PATIENCE);
        store
    }

    async fn bucket(&self, bucket: &str) -> Result<ObjectStore> {
        self.store().get_object_store(bucket).await.map_err(|error| nats(causes(&error)))
    }
}

/// Host and port in the address of a server.
fn place_of(address: &str) -> String {
    let place = address.split_once("://").map_or(address, |(_, place)| place);
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { place.to_owned() } else { format!("{place}:{PORT}") }
}

/// Which message of a subject is wanted.
#[derive(Clone, Copy)]
enum PartChoice {
    /// The last one.
    Last,
    /// The first one with this sequence number or a greater one.
    From(u64),
}

/// A part of a file. The servers with a copy of the bucket take turns in answering, and some may be gone, or not have the latest part
/// yet; so the question is repeated.
async fn part(stream: &Stream<()>, subject: &str, choice: PartChoice) -> Result<StreamMessage> {
    let mut attempt = 1;
    loop {
        let found = match choice {
            PartChoice::Last => stream.direct_get_last_for_subject(subject).await,
            PartChoice::From(sequence) => stream.direct_get_next_for_subject(subject, Some(sequence)).await,
        };
        match found {
            Ok(message) => return Ok(message),
            Err(error) if attempt == PART_ATTEMPTS => return Err(nats(causes(&error))),
            Err(_) => {
                attempt += 1;
                tokio::time::sleep(PART_PAUSE).await;
            }
        }
    }
}

/// An error that does not matter, because what was wanted exists.
fn drop_error<E>(_: E) -> Result<()> {
    Ok(())
}

/// An error with its causes, which the client does not show by itself.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        let known = text.to_lowercase();
        let is_known = known.contains(cause_text.to_lowercase().trim_start_matches("nats: "));
        if !is_known {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// A message as this crate knows it.
pub fn message_of(message: async_nats::Message) -> BusMessage {
    BusMessage {
        subject: message.subject.to_string(),
        reply: message.reply.map(|reply| reply.to_string()),
        is_undelivered: message.status == Some(StatusCode::NO_RESPONDERS),
        bytes: message.payload.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_port_have_the_usual_one() {
        for (address, place) in [
            ("nats://a:1", "a:1"),
            ("tls://bench.example", "bench.example:4222"),
            ("nats://[::1]", "[::1]:4222"),
            ("nats://[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(place_of(address), place);
        }
    }
}
