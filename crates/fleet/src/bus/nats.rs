//! The bus on NATS: core messages, and files in the object store of JetStream.

use std::path::Path;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::object_store::Config;
use async_nats::jetstream::{self, object_store::ObjectStore};
use async_nats::{Client, ConnectOptions, StatusCode, Subscriber};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{BusMessage, BusOptions};
use crate::error::{FleetError, Result};

/// How long a server may take to answer when files are stored.
const STORE_PATIENCE: Duration = Duration::from_secs(8);
/// Files of a run that nobody removes are kept by the server for so long.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// How much of a file is copied at a time.
const PIECE: usize = 128 << 10;
/// The longest pause between attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A connection to NATS, which is made again whenever it is lost.
#[derive(Clone, Debug)]
pub struct NatsBus {
    client: Client,
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
        let client = connect.connect(servers).await.map_err(|error| nats(causes(&error)))?;
        Ok(NatsBus { client })
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
        let servers = self.client.try_server_info().map_or(0, |info| info.connect_urls.len());
        let config = |num_replicas| Config {
            bucket: bucket.to_owned(),
            max_age: KEPT,
            num_replicas,
            ..Config::default()
        };
        let store = self.store();
        if servers >= 3 && store.create_object_store(config(3)).await.is_ok() {
            return Ok(());
        }
        match store.create_object_store(config(1)).await {
            Ok(_) => Ok(()),
            Err(error) if store.get_object_store(bucket).await.is_ok() => drop_error(error),
            Err(error) => Err(FleetError::Nats(format!(
                "the server stores no files ({}): start it with JetStream (nats-server -js)",
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
    /// # Errors
    /// If the file is not there, or cannot be written.
    pub async fn get_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let bucket = self.bucket(bucket).await?;
        let mut source = bucket.get(object).await.map_err(|error| nats(causes(&error)))?;
        let mut file = File::create(path).await.map_err(FleetError::file(path))?;
        let (mut piece, mut copied) = (vec![0; PIECE], 0);
        loop {
            // A server that stores the file may be gone; another one may have it.
            let read = source.read(&mut piece).await.map_err(|error| nats(causes(&error)))?;
            if read == 0 {
                break;
            }
            file.write_all(&piece[..read]).await.map_err(FleetError::file(path))?;
            copied += read as u64;
        }
        file.flush().await.map_err(FleetError::file(path))?;
        Ok(copied)
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
