//! The plain path of a server allocates nothing per request: counted, not believed.

use std::cell::Cell;
use std::future::{Future, ready};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use polygraph_link::{Conn, ConnectError, IdleState, Link, Nanos, NoDatagrams};
use polygraph_origin::{Origin, OriginConfig, Server, ServerProfile, ServerSpec};
use polygraph_stats::Recorder;
use polygraph_testing::memory::{Counting, allocations};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{Catalog, ContentKind, Distr, Seed, Selector, UniqId};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A link where a nanosecond passes whenever somebody looks.
#[derive(Clone, Default)]
struct Looking(Rc<Cell<Nanos>>);

impl Link for Looking {
    type Conn = Endless;
    type Datagrams = NoDatagrams;

    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + Nanos::new(1));
        self.0.get()
    }

    fn http_date(&self) -> [u8; 29] {
        *b"Sat, 21 Nov 2026 00:00:00 GMT"
    }

    fn unix_seconds(&self) -> i64 {
        1_795_219_200
    }

    fn unix_millis(&self) -> u64 {
        1_795_219_200_000
    }

    fn sleep_until(&self, _: Nanos) -> impl Future<Output = ()> {
        ready(())
    }

    fn connect(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<Endless, ConnectError> {
        Err(ConnectError::NoPort)
    }

    async fn exchange_datagram<R>(
        &self,
        _: Option<IpAddr>,
        _: SocketAddr,
        _: &[u8],
        _: Option<Nanos>,
        _: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect_datagrams(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<NoDatagrams, ConnectError> {
        Err(ConnectError::Refused(io::ErrorKind::Unsupported))
    }

    fn spawn(&self, _: impl Future<Output = ()> + 'static) {}
}

const REQUEST: &[u8] = b"GET /w12345678.00abcdef:0000002a/t03/_00000000000001f4 HTTP/1.1\r\nAccept: */*\r\n\
    Host: www\r\nX-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 0\r\n\
    X-Loc-World: 12345678.00abcdef:0000002a t3 -1/500 250\r\nX-Target: www:80\r\n\r\n";

/// A connection that brings the same request again and again, and takes every reply.
struct Endless {
    left: u64,
}

impl Conn for Endless {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn poll_writable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv<R>(&mut self, _: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        let request = if self.left > 0 { REQUEST } else { b"" };
        self.left = self.left.saturating_sub(1);
        Poll::Ready(Ok(take(request)))
    }

    fn idle_state(&mut self) -> IdleState {
        IdleState::Quiet
    }

    fn set_deadline(&mut self, _: Option<Nanos>) {}

    fn finish(&mut self) {}

    fn reset(&mut self) {}
}

#[test]
fn plain_requests_allocate_nothing() {
    let life = LifeCycle {
        length: Distr::Const(86_400.0),
        variance: 0.1,
        with_lmt: 1.0,
        expires: Selector::only(Expiry { base: ExpiryBase::Nmt, gap: Distr::Const(0.0) }),
    };
    for life in [None, Some(life)] {
        let mut catalog = Catalog::classic(Seed(1), Distr::Exp { mean: 13_312.0 });
        catalog.contents.iter_mut().for_each(|content| content.life.clone_from(&life));
        let mut profile =
            ServerProfile::plain("plain", vec![ContentKind::of_index(0), ContentKind::of_index(1)]);
        profile.requests_per_connection = Distr::Const(1e9);
        let config = OriginConfig {
            catalog: Arc::new(catalog),
            profiles: vec![profile],
            seed: Seed(1),
            group: UniqId::default(),
            classic: true,
            ignore_urls: false,
            accept_foreign_msgs: false,
            share_worlds: true,
            all_names: Vec::new(),
        };
        let recorder = Recorder::new();
        let origin = Origin::new(Looking::default(), Arc::new(config), 0, recorder.clone());
        let names = vec!["www:80".to_owned()];
        let server =
            Server::new(&origin, ServerSpec { profile: 0, number: 0, address: "10.0.0.1:80".into(), names });
        let serve = |requests| {
            let mut serving = pin!(Rc::clone(&server).serve(Endless { left: requests }));
            assert!(serving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        };
        serve(1);
        let before = allocations();
        serve(1);
        let one = allocations() - before;
        serve(10_001);
        // The histograms and buffers of the first run are there; the connection costs the same for many requests.
        assert_eq!(allocations() - before - one, one);
        assert_eq!(recorder.totals().ok, 10_003);
    }
}
