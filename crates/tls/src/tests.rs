//! Both sides of connections over the virtual link.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Conn, IdleState, Link, SECOND, send_all};
use polygraph_sim::VirtualLink;
use polygraph_traffic::{Seed, Selector};

use crate::client::{ClientConfigs, RobotTls};
use crate::failure::{FailureKind, TlsFailure};
use crate::handshake::TlsPeer;
use crate::handshake::{Handshake, HandshakeKind};
use crate::names::Version;
use crate::server::{ServerConfigs, TlsServer};
use crate::settings::{CertificateFault, ClientTls, Identity, KeyKind, ServerTls, TlsOffer};
use crate::{Authority, Validity, make_authority, make_key};

const EPOCH: u64 = 1_795_219_200;
/// More than the window of the virtual link in one direction and the buffers of the library, less than both windows: the client
/// reads when it has sent everything.
const LARGE: usize = 400_000;

fn peer() -> (SocketAddr, Option<u32>) {
    (SocketAddr::from(([10, 0, 0, 1], 443)), Some(0))
}

struct Bench {
    link: VirtualLink,
    server: TlsServer,
    robot: RefCell<RobotTls>,
    name: &'static str,
}

/// What came of a connection: the failure or the facts on both sides.
#[derive(Debug)]
struct Came {
    client: Result<Handshake, TlsFailure>,
    server: Result<Handshake, TlsFailure>,
    echoed: usize,
}

fn authority() -> Identity {
    make_authority("Test CA", KeyKind::EcdsaP256).unwrap()
}

fn settings(authority: &Identity) -> (ClientTls, ServerTls) {
    let server = ServerTls {
        authority: Some(authority.clone()),
        keys: Selector::only(make_key(KeyKind::EcdsaP256).unwrap()),
        ticket_secret: Some([7; 32]),
        ..ServerTls::default()
    };
    let client =
        ClientTls { roots: authority.chain.clone(), verify: true, resumption: 1.0, ..ClientTls::default() };
    (client, server)
}

fn failure(error: &std::io::Error) -> TlsFailure {
    TlsFailure::of(error).cloned().unwrap_or_else(|| TlsFailure::new(FailureKind::Closed, error.to_string()))
}

impl Bench {
    fn new((client, server): (ClientTls, ServerTls)) -> Bench {
        let mut rng = Seed(1).stream("test", 0);
        let server = ServerConfigs::default().server(0, &server, 0, "10.0.0.1", &mut rng).unwrap();
        let robot = ClientConfigs::default().robot(0, &Arc::new(client), 0, &mut rng).unwrap();
        Bench { link: VirtualLink::new(EPOCH), server, robot: RefCell::new(robot), name: "www.example.com" }
    }

    /// Opens a connection, sends `size` bytes and gets them back.
    fn try_once(&self, size: usize, resume: bool) -> Came {
        let (ours, theirs) = self.link.pair();
        let wanted = TlsPeer { peer: peer(), name: self.name, resume, protocol: None };
        let client = self.robot.borrow_mut().connect(&self.link, ours, &wanted).unwrap();
        let server = self.server.accept(&self.link, theirs).unwrap();
        let (at_client, at_server) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
        let echoed = Rc::new(RefCell::new(0));
        self.link.spawn({
            let (came, echoed) = (Rc::clone(&at_client), Rc::clone(&echoed));
            async move {
                let mut conn = client;
                if let Err(e) = conn.handshake().await {
                    *came.borrow_mut() = Some(Err(failure(&e)));
                    return;
                }
                let data: Vec<u8> = (0..size).map(|at| at as u8).collect();
                let result: std::io::Result<()> = async {
                    send_all(&mut conn, &data).await?;
                    let mut back = Vec::new();
                    while back.len() < data.len() {
                        let more = conn.recv(|bytes| {
                            back.extend_from_slice(bytes);
                            !bytes.is_empty()
                        });
                        assert!(more.await?, "{} bytes", back.len());
                    }
                    assert!(back == data);
                    *echoed.borrow_mut() = back.len();
                    Ok(())
                }
                .await;
                // Lets tickets arrive.
                let idle = conn.idle_state();
                assert!(result.is_err() || matches!(idle, IdleState::Quiet | IdleState::Closed), "{idle:?}");
                let facts = conn.handshake_facts().take();
                *came.borrow_mut() = Some(result.map(|()| facts.unwrap()).map_err(|e| failure(&e)));
            }
        });
        self.link.spawn({
            let came = Rc::clone(&at_server);
            async move {
                let mut conn = server;
                if let Err(e) = conn.handshake().await {
                    *came.borrow_mut() = Some(Err(failure(&e)));
                    return;
                }
                loop {
                    let mut piece = Vec::new();
                    let received = conn.recv(|bytes| piece.extend_from_slice(bytes)).await;
                    if let Some(facts) = conn.handshake_facts().take() {
                        *came.borrow_mut() = Some(Ok(facts));
                    }
                    match received {
                        Ok(()) if !piece.is_empty() => send_all(&mut conn, &piece).await.unwrap(),
                        Ok(()) => return,
                        Err(e) => {
                            let mut came = came.borrow_mut();
                            came.get_or_insert(Err(failure(&e)));
                            return;
                        }
                    }
                }
            }
        });
        self.link.run(self.link.now() + 100 * SECOND);
        let take = |came: &Rc<RefCell<Option<_>>>| came.borrow_mut().take().expect("an end");
        Came { client: take(&at_client), server: take(&at_server), echoed: echoed.take() }
    }
}

#[test]
fn bytes_pass_in_all_versions_and_with_all_kinds_of_keys() {
    let authority = authority();
    for version in Version::ALL {
        for key in [KeyKind::Rsa(2048), KeyKind::EcdsaP256, KeyKind::Ed25519] {
            let (mut client, mut server) = settings(&authority);
            client.offer.versions = Selector::only(vec![version]);
            server.keys = Selector::only(make_key(key).unwrap());
            let bench = Bench::new((client, server));
            for size in [1, LARGE] {
                let came = bench.try_once(size, false);
                let facts = came.client.unwrap();
                assert_eq!(
                    (facts.version, facts.kind, came.echoed),
                    (Some(version), HandshakeKind::Full, size)
                );
                assert_eq!(facts.issuer.as_deref(), Some("Test CA"));
                assert_eq!(came.server.unwrap().kind, HandshakeKind::Full);
            }
        }
    }
}

#[test]
fn sessions_are_resumed_by_ticket_and_by_identifier() {
    for version in Version::ALL {
        for (ticket, cache) in [(Some([7; 32]), 0), (None, 100)] {
            let (mut client, mut server) = settings(&authority());
            client.offer.versions = Selector::only(vec![version]);
            (server.ticket_secret, server.cache) = (ticket, cache);
            let bench = Bench::new((client, server));
            assert_eq!(bench.try_once(9, true).client.unwrap().kind, HandshakeKind::Full);
            for (resume, kind) in
                [(true, HandshakeKind::Resumed), (false, HandshakeKind::Full), (true, HandshakeKind::Resumed)]
            {
                let came = bench.try_once(9, resume);
                let facts = came.client.unwrap();
                assert_eq!((facts.kind, facts.offered), (kind, resume), "{version:?} {cache}");
                assert_eq!(came.server.unwrap().kind, kind);
            }
        }
    }
}

#[test]
fn a_session_that_the_server_does_not_know_is_offered_in_vain() {
    let authority = authority();
    let (client, mut server) = settings(&authority);
    let bench = Bench::new((client.clone(), server.clone()));
    bench.try_once(9, true).client.unwrap();
    server.ticket_secret = Some([8; 32]);
    let other = Bench::new((client, server));
    let bench = Bench { server: other.server, ..bench };
    let facts = bench.try_once(9, true).client.unwrap();
    assert_eq!((facts.kind, facts.offered), (HandshakeKind::Full, true));
}

#[test]
fn early_data_arrive_or_are_sent_again() {
    let authority = authority();
    let (mut client, mut server) = settings(&authority);
    client.early_data = true;
    (server.ticket_secret, server.cache, server.early_data) = (None, 100, 16_384);
    let bench = Bench::new((client.clone(), server.clone()));
    assert_eq!(bench.try_once(9, true).client.unwrap().kind, HandshakeKind::Full);
    for size in [9, LARGE] {
        let came = bench.try_once(size, true);
        assert_eq!((came.client.unwrap().kind, came.echoed), (HandshakeKind::Early, size));
        assert_eq!(came.server.unwrap().kind, HandshakeKind::Early);
    }
    // A server that has forgotten the session ignores early data.
    let other = Bench::new((client, server));
    let bench = Bench { server: other.server, ..bench };
    let came = bench.try_once(900, true);
    let facts = came.client.unwrap();
    assert_eq!((facts.kind, facts.early_refused, came.echoed), (HandshakeKind::Full, true, 900));
}

/// The kind of failure at the client and at the server.
fn kinds(settings: (ClientTls, ServerTls), name: &'static str) -> (FailureKind, FailureKind, String) {
    let bench = Bench { name, ..Bench::new(settings) };
    let came = bench.try_once(9, false);
    let (client, server) = (came.client.unwrap_err(), came.server.unwrap_err());
    (client.kind, server.kind, format!("{client} / {server}"))
}

#[test]
fn each_bad_certificate_has_its_class() {
    use FailureKind::{NotValidNow, NothingInCommon, Refused, UnknownAuthority, WrongName};
    let authority = authority();
    let key = make_key(KeyKind::EcdsaP256).unwrap();
    let signer = Authority::new(&authority).unwrap();
    let with = |name: &str, validity| {
        let (client, server) = settings(&authority);
        let identity = signer.sign(&[name.to_owned()], &key, validity).unwrap();
        (client, ServerTls { identities: vec![identity], ..server })
    };
    let name = "www.example.com";
    let (kind, other, text) = kinds(with("other.example.com", Validity::Always), name);
    assert_eq!((kind, other), (WrongName, Refused), "{text}");
    assert!(
        text.contains("other.example.com") && text.contains("bad_certificate")
            || text.contains("certificate"),
        "{text}"
    );
    let (kind, other, text) = kinds(with(name, Validity::Expired), name);
    assert_eq!((kind, other), (NotValidNow, Refused), "{text}");
    assert!(text.contains("certificate_expired"), "{text}");
    let (mut client, server) = with(name, Validity::Always);
    client.roots = make_authority("Other CA", KeyKind::EcdsaP256).unwrap().chain;
    let (kind, other, text) = kinds((client, server), name);
    assert_eq!((kind, other), (UnknownAuthority, Refused), "{text}");
    assert!(text.contains("unknown_ca"), "{text}");
    let (client, server) = settings(&authority);
    let server = ServerTls { identities: vec![authority.clone()], ..server };
    let (kind, _, text) = kinds((client, server), name);
    assert_eq!(kind, FailureKind::AuthorityCertificate, "{text}");
    assert!(text.contains("CA:FALSE"), "{text}");
    // Another authority with the same name, whose key cannot have made such a signature.
    let (mut client, server) = with(name, Validity::Always);
    client.roots = make_authority("Test CA", KeyKind::Ed25519).unwrap().chain;
    let (kind, other, text) = kinds((client, server), name);
    assert_eq!((kind, other), (UnknownAuthority, Refused), "{text}");
    let (mut client, mut server) = settings(&authority);
    client.offer = TlsOffer { ciphers: Selector::only(vec![0x1301]), ..TlsOffer::default() };
    server.offer = TlsOffer { ciphers: Selector::only(vec![0x1303]), ..TlsOffer::default() };
    let (kind, other, text) = kinds((client, server), name);
    assert_eq!((kind, other), (NothingInCommon, NothingInCommon), "{text}");
    // Without the check, all of these certificates do.
    let (mut client, server) = with("other.example.com", Validity::Expired);
    client.verify = false;
    assert_eq!(Bench::new((client, server)).try_once(9, false).echoed, 9);
}

#[test]
fn servers_show_the_fault_that_they_are_told_to_show() {
    use CertificateFault as F;
    use FailureKind::{NotValidNow, Refused, UnknownAuthority, WrongName};
    let trusted = authority();
    for (fault, wanted) in [
        (F::Expired, NotValidNow),
        (F::NotYetValid, NotValidNow),
        (F::WrongName, WrongName),
        (F::SelfSigned, UnknownAuthority),
        (F::UnknownAuthority, UnknownAuthority),
    ] {
        let (client, server) = settings(&trusted);
        let signer = if fault == F::UnknownAuthority { authority() } else { trusted.clone() };
        let server = ServerTls { fault: Some(fault), authority: Some(signer), ..server };
        let (kind, other, text) = kinds((client.clone(), server.clone()), "www.example.com");
        assert_eq!((kind, other), (wanted, Refused), "{fault:?}: {text}");
        assert_eq!(kind.class(), fault.refusal(), "{fault:?}");
        // Who does not look takes it for a good one.
        assert_eq!(Bench::new((ClientTls { verify: false, ..client }, server)).try_once(9, false).echoed, 9);
        assert_eq!(CertificateFault::parse(fault.name()), Ok(fault));
    }
    assert!(CertificateFault::parse("revoked").unwrap_err().contains("expired, not_yet_valid, wrong_name"));
}

#[test]
fn a_server_checks_the_certificates_of_its_clients() {
    let authority = authority();
    let (client, mut server) = settings(&authority);
    server.client_roots = authority.chain.clone();
    let (_, at_server, text) = kinds((client.clone(), server.clone()), "www.example.com");
    assert_eq!(at_server, FailureKind::BadCertificate, "{text}");
    let key = make_key(KeyKind::Ed25519).unwrap();
    let identity =
        Authority::new(&authority).unwrap().sign(&["robot".to_owned()], &key, Validity::Always).unwrap();
    let came = Bench::new((ClientTls { identities: vec![identity], ..client }, server)).try_once(9, false);
    assert_eq!((came.echoed, came.server.unwrap().issuer.as_deref()), (9, Some("Test CA")));
}

#[test]
fn bytes_that_are_not_tls_are_called_so() {
    let bench = Bench::new(settings(&authority()));
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-x\r\n", b""] {
        let (ours, mut theirs) = bench.link.pair();
        let wanted = TlsPeer { peer: peer(), name: bench.name, resume: false, protocol: None };
        let mut conn = bench.robot.borrow_mut().connect(&bench.link, ours, &wanted).unwrap();
        let kind = Rc::new(RefCell::new(None));
        bench.link.spawn({
            let kind = Rc::clone(&kind);
            async move { *kind.borrow_mut() = conn.handshake().await.err().map(|e| failure(&e).kind) }
        });
        if answer.is_empty() {
            theirs.finish();
        } else {
            theirs.send_at(bench.link.now(), answer.to_vec());
        }
        bench.link.run(bench.link.now() + SECOND);
        let wanted = if answer.is_empty() { FailureKind::Closed } else { FailureKind::NotTls };
        assert_eq!(*kind.borrow(), Some(wanted), "{}", answer.escape_ascii());
    }
}
