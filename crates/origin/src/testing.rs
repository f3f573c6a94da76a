//! Helpers for the tests of this crate.

use std::cell::RefCell;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Conn, Link, SECOND};
use polygraph_sim::{VirtualConn, VirtualLink};
use polygraph_traffic::{Catalog, Content, ContentKind, Distr, Seed, UniqId};

use crate::settings::{OriginConfig, ServerProfile};

/// The standard path of object 500 of the first content type.
pub const PATH: &str = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4";

/// A configuration with one profile that serves all of `contents`.
pub fn config_of(contents: Vec<Content>) -> OriginConfig {
    let kinds = (0..contents.len()).map(ContentKind::of_index).collect();
    OriginConfig {
        catalog: Arc::new(Catalog { seed: Seed(1), contents }),
        profiles: vec![ServerProfile::plain("test", kinds)],
        seed: Seed(1),
        group: UniqId { time: 7, mix: 7, counter: 8 },
        classic: false,
        ignore_urls: false,
        accept_foreign_msgs: false,
        share_worlds: false,
        all_names: Vec::new(),
    }
}

/// A configuration of generation 1.x whose objects have `size` bytes; kind 3 is cachable, kind 4 is not.
pub fn classic(size: f64) -> OriginConfig {
    let catalog = Catalog::classic(Seed(1), Distr::Const(size));
    OriginConfig { classic: true, ..config_of(catalog.contents) }
}

/// The time of day when the clock starts: Sat, 21 Nov 2026 00:00:00 GMT.
pub const EPOCH: u64 = 1_795_219_200;

/// A loop whose clock starts at [`EPOCH`].
pub fn link() -> VirtualLink {
    VirtualLink::new(EPOCH)
}

/// The client's end of a connection.
pub struct TestClient {
    link: VirtualLink,
    conn: Rc<RefCell<VirtualConn>>,
}

impl TestClient {
    /// Sends bytes.
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let sent = self.with(|conn| conn.try_send(&[IoSlice::new(bytes)]));
        assert_eq!(sent.unwrap(), bytes.len());
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.with(VirtualConn::finish);
    }

    /// Resets the connection.
    pub fn reset(&self) {
        self.with(VirtualConn::reset);
    }

    /// Limits the receive window to this size; it then grows by one byte in every millisecond.
    pub fn narrow(&self, mut window: usize) {
        self.with(|conn| conn.set_window(window));
        let (link, conn) = (self.link.clone(), Rc::clone(&self.conn));
        self.link.spawn(async move {
            loop {
                link.sleep_until(link.now() + SECOND / 1000).await;
                let mut conn = conn.borrow_mut();
                if conn.is_ended() {
                    return;
                }
                if conn.room() == 0 {
                    window += 1;
                    conn.set_window(window);
                }
            }
        });
    }

    /// The bytes that have arrived since the last call.
    pub fn take(&self) -> Vec<u8> {
        self.with(VirtualConn::take_arrived)
    }

    /// The bytes that have arrived since the last call, as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.take()).unwrap()
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.with(|conn| conn.is_ended())
    }

    fn with<R>(&self, use_it: impl FnOnce(&mut VirtualConn) -> R) -> R {
        use_it(&mut self.conn.borrow_mut())
    }
}

/// The two ends of a connection.
pub fn connection(link: &VirtualLink) -> (TestClient, VirtualConn) {
    let (ours, theirs) = link.pair();
    (TestClient { link: link.clone(), conn: Rc::new(RefCell::new(ours)) }, theirs)
}
