//! Bytes of others as records: what is fed to both sides of a connection here must never make them panic.

use std::sync::{Arc, LazyLock};

use polygraph_link::{Conn, Link, SECOND};
use polygraph_sim::VirtualLink;
use polygraph_tls::TlsConn;
use polygraph_tls::client::ClientConfigs;
use polygraph_tls::handshake::TlsPeer;
use polygraph_tls::server::{ServerConfigs, TlsServer};
use polygraph_tls::settings::{ClientTls, KeyKind, ServerTls};
use polygraph_tls::{make_authority, make_key};
use polygraph_traffic::{Seed, Selector};

static SERVER: LazyLock<ServerTls> = LazyLock::new(|| ServerTls {
    authority: Some(make_authority("CA", KeyKind::EcdsaP256).expect("a key")),
    keys: Selector::only(make_key(KeyKind::EcdsaP256).expect("a key")),
    ticket_secret: Some([7; 32]),
    ..ServerTls::default()
});

thread_local! {
    static CONFIG: TlsServer = {
        let mut rng = Seed(1).stream("test", 0);
        ServerConfigs::default().server(0, &SERVER, 0, "10.0.0.1", &mut rng).expect("usable settings")
    };
}

/// The server's side of a connection.
pub fn server<C: Conn>(link: &VirtualLink, conn: C) -> TlsConn<C> {
    CONFIG.with(|config| config.accept(link, conn)).expect("usable settings")
}

/// Feeds `data` to a server and to a client in the middle of their handshakes. The first byte says how the rest is cut into
/// pieces.
pub fn records(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else { return };
    let link = VirtualLink::new(0);
    let (peer_of_server, at_server) = link.pair();
    let (peer_of_client, at_client) = link.pair();
    let server = server(&link, at_server);
    let mut rng = Seed(1).stream("test", 1);
    let settings = Arc::new(ClientTls { early_data: true, resumption: 1.0, ..ClientTls::default() });
    let mut robot = ClientConfigs::default().robot(0, &settings, 0, &mut rng).expect("usable settings");
    let peer = ("10.0.0.1:443".parse().expect("an address"), None);
    let wanted = TlsPeer { peer, name: "a.test", resume: true, protocol: None };
    let client = robot.connect(&link, at_client, &wanted).expect("a name");
    for mut conn in [server, client] {
        link.spawn(async move {
            if conn.handshake().await.is_ok() {
                while conn.recv(|bytes| !bytes.is_empty()).await.unwrap_or(false) {}
            }
            conn.idle_state();
        });
    }
    for mut peer in [peer_of_server, peer_of_client] {
        for piece in data.chunks(usize::from(cut) + 1) {
            peer.send_at(link.now(), piece.to_vec());
        }
        peer.finish();
    }
    link.run(link.now() + SECOND);
}
