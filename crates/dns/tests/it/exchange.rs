//! The resolver and the server over loopback.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use polygraph_dns::reply::{Transport, reply};
use polygraph_dns::{
    AddressCache, AddressCaches, AnswerSource, AttemptFailure, DnsError, DomainName, LookupError, NameServer,
    NameServerConfig, Query, QueryType, Zone,
};

use crate::sockets::{Fake, nobody, on_a_loop, resolver};

fn zone() -> Zone {
    let mut zone = Zone::default();
    zone.add_zone("bench.tst").unwrap();
    for i in 1..=9u8 {
        zone.add(&format!("w{i}.bench.tst"), &[[10, 0, 0, i].into()]).unwrap();
    }
    let three = [1, 2, 3].map(|i| IpAddr::from([10, 0, 1, i]));
    zone.add("three.bench.tst", &three).unwrap();
    zone.add("*.dyn.bench.tst", &[[10, 0, 2, 1].into()]).unwrap();
    zone
}

fn server() -> NameServer {
    NameServer::start(NameServerConfig::local(zone())).unwrap()
}

fn name(text: &str) -> DomainName {
    DomainName::parse(text).unwrap()
}

fn classes(error: &LookupError) -> Vec<AttemptFailure> {
    error.attempts.iter().map(|attempt| attempt.failure).collect()
}

/// What a good server would say.
fn good(request: &[u8]) -> Vec<u8> {
    reply(&zone(), 60, request, Transport::Udp).unwrap().message
}

#[test]
fn names_become_addresses() {
    let server = server();
    on_a_loop(async |net| {
        let (resolver, stats) = resolver(&net, server.local_addrs(), 2000, AddressCache::new(0));
        for (text, address) in
            [("w1.bench.tst", "10.0.0.1"), ("W9.Bench.Tst", "10.0.0.9"), ("x.dyn.bench.tst", "10.0.2.1")]
        {
            let found = resolver.lookup(None, &name(text)).await.unwrap();
            assert_eq!(found.answer.addresses(), [address.parse::<IpAddr>().unwrap()], "{text}");
            let AnswerSource::Server { response_us } = found.source else { panic!("{found:?}") };
            assert!((1..1_000_000).contains(&response_us), "{response_us} us");
        }
        let stats = *stats.borrow();
        assert_eq!((stats.lookups, stats.queries, stats.answers, stats.failures), (3, 3, 3, 0));
        assert_eq!(stats.mean_response_us(), Some(stats.response_us as f64 / 3.0));
    });
    let seen = server.snapshot();
    assert_eq!((seen.udp_queries, seen.answered, seen.queries()), (3, 3, 3));
}

#[test]
fn queries_leave_from_the_address_that_is_given() {
    let server = server();
    on_a_loop(async |net| {
        let (resolver, _) = resolver(&net, server.local_addrs(), 2000, AddressCache::new(0));
        let from = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        assert!(resolver.lookup(from("127.9.9.9"), &name("w1.bench.tst")).await.is_ok());
        // Another family than the server's cannot be used.
        assert!(resolver.lookup(from("::1"), &name("w1.bench.tst")).await.is_ok());
        // Not an address of this machine.
        let error = resolver.lookup(from("192.0.2.1"), &name("w1.bench.tst")).await.unwrap_err();
        assert_eq!(error.error, DnsError::AllFailed);
        assert_eq!(classes(&error), [AttemptFailure::Socket(std::io::ErrorKind::AddrNotAvailable)]);
    });
}

#[test]
fn addresses_take_turns_at_the_server_and_in_the_cache() {
    let server = server();
    on_a_loop(async |net| {
        let (fresh, _) = resolver(&net, server.local_addrs(), 2000, AddressCache::new(0));
        let mut firsts = Vec::new();
        for _ in 0..6 {
            let found = fresh.lookup(None, &name("three.bench.tst")).await.unwrap();
            assert_eq!(found.answer.addresses().len(), 3);
            firsts.push(found.answer.addresses()[0].to_string());
        }
        assert_eq!(firsts, ["10.0.1.1", "10.0.1.2", "10.0.1.3"].repeat(2));
        let (cached, stats) = resolver(&net, server.local_addrs(), 2000, AddressCache::new(10));
        let mut used = Vec::new();
        for _ in 0..6 {
            used.push(
                cached.lookup(None, &name("three.bench.tst")).await.unwrap().answer.address().to_string(),
            );
        }
        assert_eq!(used, ["10.0.1.1", "10.0.1.2", "10.0.1.3"].repeat(2));
        assert_eq!((stats.borrow().queries, stats.borrow().cache_hits), (1, 5));
    });
}

#[test]
fn a_name_that_does_not_exist_is_an_answer() {
    let (first, second) = (server(), server());
    on_a_loop(async |net| {
        let servers = [first.local_addrs()[0], second.local_addrs()[0]];
        let (resolver, stats) = resolver(&net, &servers, 2000, AddressCache::new(10));
        for _ in 0..2 {
            let error = resolver.lookup(None, &name("w10.bench.tst")).await.unwrap_err();
            assert_eq!((error.error, error.attempts.len()), (DnsError::NoName, 1));
        }
        // It is not remembered, and nobody else is asked.
        assert_eq!((stats.borrow().queries, stats.borrow().failures), (2, 2));
        assert_eq!(stats.borrow().errors[DnsError::NoName.index()], 2);
        // Whoever does not know the zone says so, and the next server is asked.
        let error = resolver.lookup(None, &name("example.com")).await.unwrap_err();
        assert_eq!(error.error, DnsError::AllFailed);
        assert_eq!(classes(&error), [AttemptFailure::Dns(DnsError::Refused); 2]);
    });
    assert_eq!((first.snapshot().no_name, second.snapshot().no_name), (2, 0));
    assert_eq!((first.snapshot().refused, second.snapshot().refused), (1, 1));
}

#[test]
fn a_dead_server_is_passed_over() {
    let silent = Fake::start(|_| Vec::new());
    let server = server();
    on_a_loop(async |net| {
        // Nobody at the first port, silence at the second, an answer from the third.
        let servers = [nobody(), silent.address, server.local_addrs()[0]];
        let (resolver, stats) = resolver(&net, &servers, 150, AddressCache::new(10));
        let begin = Instant::now();
        let found = resolver.lookup(None, &name("w1.bench.tst")).await.unwrap();
        let took = begin.elapsed();
        assert_eq!(found.answer.addresses(), [IpAddr::from([10, 0, 0, 1])]);
        assert!(took >= Duration::from_millis(150), "{took:?}");
        let AnswerSource::Server { response_us } = found.source else { panic!("{found:?}") };
        assert!(u128::from(response_us) < took.as_micros() - 149_000, "{response_us} us of {took:?}");
        let stats = *stats.borrow();
        assert_eq!((stats.queries, stats.answers, stats.failures, stats.socket_errors), (3, 1, 0, 1));
        assert_eq!(stats.errors[DnsError::Timeout.index()], 1);
    });
    assert_eq!(silent.asked(), 1);
}

#[test]
fn when_all_fail_each_is_named() {
    let silent = Fake::start(|_| Vec::new());
    on_a_loop(async |net| {
        let (both, _) = resolver(&net, &[silent.address, nobody()], 50, AddressCache::new(0));
        let error = both.lookup(None, &name("w1.bench.tst")).await.unwrap_err();
        assert_eq!(error.error, DnsError::AllFailed);
        let refused = AttemptFailure::Socket(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(classes(&error), [AttemptFailure::Dns(DnsError::Timeout), refused]);
        let (one, _) = resolver(&net, &[silent.address], 50, AddressCache::new(0));
        assert_eq!(one.lookup(None, &name("w1.bench.tst")).await.unwrap_err().error, DnsError::Timeout);
        let (none, _) = resolver(&net, &[], 50, AddressCache::new(0));
        assert_eq!(none.lookup(None, &name("w1.bench.tst")).await.unwrap_err().error, DnsError::AllFailed);
    });
}

#[test]
fn replies_to_other_queries_are_passed_over() {
    let wrong_id = |request: &[u8]| {
        let mut reply = good(request);
        reply[0] ^= 1;
        reply
    };
    let wrong_name = |request: &[u8]| {
        let mut reply = good(request);
        reply[13] ^= 1;
        reply
    };
    let late = Fake::start(move |request| vec![wrong_id(request), wrong_name(request), good(request)]);
    let never_id = Fake::start(move |request| vec![wrong_id(request); 3]);
    let never_name = Fake::start(move |request| vec![wrong_name(request)]);
    let garbage = Fake::start(|request| vec![[&request[..2], b"garbage"].concat()]);
    on_a_loop(async |net| {
        #[track_caller]
        fn class(result: Result<polygraph_dns::Resolved, LookupError>) -> DnsError {
            result.unwrap_err().error
        }
        let ask_for = async |address: SocketAddr, patience_ms| {
            let (resolver, _) = resolver(&net, &[address], patience_ms, AddressCache::new(0));
            resolver.lookup(None, &name("w1.bench.tst")).await
        };
        let ask = async |address| ask_for(address, 300).await;
        assert_eq!(ask(late.address).await.unwrap().answer.addresses(), [IpAddr::from([10, 0, 0, 1])]);
        assert_eq!(class(ask(never_id.address).await), DnsError::Id);
        assert_eq!(class(ask(never_name.address).await), DnsError::Mismatch);
        // Garbage under the right id is the reply; there is nothing to wait for.
        let begin = Instant::now();
        assert_eq!(class(ask_for(garbage.address, 20_000).await), DnsError::Format);
        assert!(begin.elapsed() < Duration::from_secs(10));
    });
}

#[test]
fn the_least_recently_used_answer_goes_first() {
    let server = server();
    on_a_loop(async |net| {
        let cache = AddressCache::new(2);
        let (resolver, _) = resolver(&net, server.local_addrs(), 2000, cache.clone());
        let mut sources = String::new();
        for i in [1, 2, 1, 3, 1, 2, 3, 1] {
            let found = resolver.lookup(None, &name(&format!("w{i}.bench.tst"))).await.unwrap();
            sources.push(if found.source == AnswerSource::Cache { 'h' } else { 'm' });
        }
        assert_eq!(sources, "mmhmhmmm");
        assert_eq!(cache.len(), 2);
    });
}

#[test]
fn robots_of_a_group_share_a_cache() {
    let server = server();
    on_a_loop(async |net| {
        let mut caches = AddressCaches::default();
        let mut robot = |group| resolver(&net, server.local_addrs(), 2000, caches.cache(10, group)).0;
        let (a, b, other, alone) = (robot(Some("g")), robot(Some("g")), robot(Some("h")), robot(None));
        let mut source = Vec::new();
        for resolver in [&a, &b, &other, &alone, &alone] {
            let found = resolver.lookup(None, &name("w1.bench.tst")).await.unwrap();
            source.push(found.source == AnswerSource::Cache);
        }
        assert_eq!(source, [false, true, false, false, true]);
    });
    assert_eq!(server.snapshot().queries(), 3);
}

#[test]
fn lookups_of_one_name_at_a_time_share_a_query() {
    // Slow enough for all to be under way.
    let slow = Fake::start(|request| {
        std::thread::sleep(Duration::from_millis(100));
        vec![good(request)]
    });
    on_a_loop(async |net| {
        // Even without memory.
        let (resolver, stats) = resolver(&net, &[slow.address], 5000, AddressCache::new(0));
        let lookups: Vec<_> = (0..50)
            .map(|_| {
                let resolver = resolver.clone();
                tokio::task::spawn_local(async move {
                    resolver.lookup(None, &name("w1.bench.tst")).await.unwrap()
                })
            })
            .collect();
        let mut joined = 0;
        for lookup in lookups {
            joined += u32::from(lookup.await.unwrap().source == AnswerSource::Joined);
        }
        assert_eq!(joined, 49);
        let stats = *stats.borrow();
        assert_eq!((stats.lookups, stats.joined, stats.queries, stats.answers), (50, 49, 1, 1));
    });
    assert_eq!(slow.asked(), 1);
}

#[test]
fn when_the_one_who_asked_gives_up_another_one_asks() {
    let silent_once = Fake::start({
        let first = std::sync::atomic::AtomicBool::new(true);
        move |request| match first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            true => Vec::new(),
            false => vec![good(request)],
        }
    });
    on_a_loop(async |net| {
        let (resolver, stats) = resolver(&net, &[silent_once.address], 20_000, AddressCache::new(10));
        let spawn = || {
            let resolver = resolver.clone();
            tokio::task::spawn_local(async move { resolver.lookup(None, &name("w1.bench.tst")).await })
        };
        let first = spawn();
        tokio::task::yield_now().await;
        let (second, third) = (spawn(), spawn());
        while silent_once.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        first.abort();
        let sources = [second.await.unwrap().unwrap().source, third.await.unwrap().unwrap().source];
        assert!(matches!(sources, [AnswerSource::Server { .. }, AnswerSource::Joined]), "{sources:?}");
        assert_eq!((stats.borrow().queries, stats.borrow().joined), (2, 2));
    });
}

#[test]
fn failures_are_shared_too() {
    let silent = Fake::start(|_| Vec::new());
    on_a_loop(async |net| {
        let (resolver, stats) = resolver(&net, &[silent.address], 100, AddressCache::new(10));
        let lookups: Vec<_> = (0..3)
            .map(|_| {
                let resolver = resolver.clone();
                tokio::task::spawn_local(async move { resolver.lookup(None, &name("w1.bench.tst")).await })
            })
            .collect();
        for lookup in lookups {
            assert_eq!(lookup.await.unwrap().unwrap_err().error, DnsError::Timeout);
        }
        let stats = *stats.borrow();
        assert_eq!((stats.failures, stats.queries, stats.errors[DnsError::Timeout.index()]), (3, 1, 1));
    });
}

#[test]
fn many_names_at_a_time() {
    let server = server();
    on_a_loop(async |net| {
        let (resolver, stats) = resolver(&net, server.local_addrs(), 5000, AddressCache::new(100));
        let lookups: Vec<_> = (0..500)
            .map(|i| {
                let resolver = resolver.clone();
                tokio::task::spawn_local(async move {
                    let name = name(&format!("w{i:016x}.dyn.bench.tst"));
                    resolver.lookup(None, &name).await.unwrap().answer.address()
                })
            })
            .collect();
        for lookup in lookups {
            assert_eq!(lookup.await.unwrap(), IpAddr::from([10, 0, 2, 1]));
        }
        assert_eq!((stats.borrow().answers, stats.borrow().failures), (500, 0));
    });
    assert_eq!(server.snapshot().answered, 500);
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

fn read_framed(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).unwrap();
    message
}

#[test]
fn tcp_has_room_for_all_addresses_and_for_many_queries() {
    let mut zone = zone();
    let many: Vec<IpAddr> = (0..700u16).map(|i| [10, 1, (i >> 8) as u8, i as u8].into()).collect();
    zone.add("many.bench.tst", &many).unwrap();
    let server = NameServer::start(NameServerConfig::local(zone)).unwrap();
    let mut stream = TcpStream::connect(server.local_addrs()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let queries: Vec<Query> = ["many.bench.tst", "w1.bench.tst", "many.bench.tst"]
        .iter()
        .enumerate()
        .map(|(id, text)| Query::new(id as u16, name(text), QueryType::A))
        .collect();
    // All at once, and cut where it hurts.
    let bytes: Vec<u8> = queries.iter().flat_map(|query| framed(&query.message())).collect();
    stream.write_all(&bytes[..1]).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    stream.write_all(&bytes[1..]).unwrap();
    for (query, count) in queries.iter().zip([700, 1, 700]) {
        assert_eq!(query.read(&read_framed(&mut stream)).unwrap().len(), count);
    }
    // A message that is none ends the conversation.
    stream.write_all(&framed(b"garbage")).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    let seen = server.snapshot();
    assert_eq!((seen.tcp_queries, seen.connections, seen.ignored, seen.truncated), (3, 1, 1, 0));
}

#[test]
fn several_addresses_and_an_end() {
    let listen = ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"].map(|address| address.parse().unwrap()).to_vec();
    let mut server = NameServer::start(NameServerConfig { listen, ttl: 60, zone: zone() }).unwrap();
    let addresses = server.local_addrs().to_vec();
    assert!(addresses.iter().all(|address| address.port() != 0), "{addresses:?}");
    on_a_loop(async |net| {
        for address in &addresses {
            let (resolver, _) = resolver(&net, &[*address], 2000, AddressCache::new(0));
            assert!(resolver.lookup(None, &name("w1.bench.tst")).await.is_ok(), "{address}");
        }
        // The port is taken, for both.
        let taken = NameServerConfig { listen: vec![addresses[0]], ttl: 60, zone: zone() };
        assert_eq!(NameServer::start(taken).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        server.stop();
        assert_eq!(server.snapshot().queries(), 3);
        let (resolver, _) = resolver(&net, &addresses[..1], 2000, AddressCache::new(0));
        let error = resolver.lookup(None, &name("w1.bench.tst")).await.unwrap_err();
        assert_eq!(classes(&error), [AttemptFailure::Socket(std::io::ErrorKind::ConnectionRefused)]);
    });
    let none = NameServerConfig { listen: Vec::new(), ttl: 60, zone: Zone::default() };
    assert_eq!(NameServer::start(none).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
