use super::*;
use polygraph_link::Nanos;

fn block(hits: u64, misses: u64) -> Block {
    let mut block = Block::new();
    for (class, n, size) in [(Class::Hit, hits, 10), (Class::Miss, misses, 30)] {
        for _ in 0..n {
            block.finish(&Finished { class, size, rptm_us: 1000, ..Finished::default() });
        }
    }
    block
}

#[test]
fn ratios_are_undefined_without_transactions() {
    let empty = Block::new();
    assert_eq!((empty.hit_ratio(), empty.error_ratio(), empty.mean_rptm_us()), (None, None, None));
}

#[test]
fn ratios_by_count_and_by_bytes() {
    let mut all = block(3, 1);
    assert_eq!(all.hit_ratio(), Some(0.75));
    assert_eq!(all.byte_hit_ratio(), Some(0.5));
    all.concatenate(&block(0, 4));
    assert_eq!(all.hit_ratio(), Some(3.0 / 8.0));
    all.count_error(ErrorKind::Timeout);
    all.count_error(ErrorKind::UncachableHit);
    assert_eq!(all.error_ratio(), Some(1.0 / 9.0));
    assert_eq!(all.noted_count(), 1);
}

#[test]
fn only_basic_transactions_take_part_in_hit_ratios() {
    let mut all = block(1, 1);
    for class in Class::ALL.into_iter().filter(|class| !class.is_basic()) {
        let done = Finished { class, size: 1000, offered_hit: true, kind: Some(4), ..Finished::default() };
        all.finish(&done);
    }
    assert_eq!((all.ok_count(), all.hit_ratio(), all.byte_hit_ratio()), (13, Some(0.5), Some(0.25)));
    assert_eq!((all.offered_hits.count, all.kinds[4].basic.count, all.kinds[4].all().count), (0, 0, 11));
}

#[test]
fn transactions_are_counted_where_they_belong() {
    let mut block = Block::new();
    let done = Finished { size: 7, request_size: 3, kind: Some(3), ..Finished::default() };
    block.finish(&Finished { class: Class::Hit, offered_hit: true, embedded: true, ..done });
    block.finish(&Finished { class: Class::Hit, first: true, ..done });
    block.finish(&Finished { class: Class::Miss, offered_hit: true, due_rptm_us: Some(5), ..done });
    block.miss(MissCause::Evicted, 7);
    assert_eq!((block.offered_hits.count, block.offered_hits.sum), (2, 14.0));
    assert_eq!((block.offered_misses.count, block.offered_misses.max()), (1, Some(7)));
    assert_eq!(block.false_hits, CountAndBytes { count: 1, bytes: 7 });
    assert_eq!((block.embedded.count, block.unique, block.req_size.count()), (1, 1, 3));
    assert_eq!((block.missed_total().bytes, block.fills().count), (7, 1));
    let kind = &block.kinds[3];
    assert_eq!((kind.all().count, kind.basic.count, kind.offered_hits.count, kind.hits.count), (3, 3, 2, 2));
}

#[test]
fn every_status_has_its_transactions() {
    let mut block = block(2, 1);
    let done = Finished { status: 304, class: Class::Ims304, size: 90, rptm_us: 7, ..Finished::default() };
    block.finish(&done);
    block.fail(503, 5, 50, false);
    block.fail(200, 9_000, 55, true);
    block.challenge(AuthScheme::Digest, 407, 4, 70, false);
    assert_eq!(block.statuses(), [200, 304, 407, 503]);
    assert_eq!((block.auth_steps[1].size.sum(), block.by_status(407).size.count()), (70.0, 1));
    let sums = |status| (block.by_status(status).size.count(), block.by_status(status).size.sum());
    assert_eq!((sums(200), sums(304), sums(503), sums(404)), ((4, 105.0), (1, 90.0), (1, 50.0), (0, 0.0)));
    assert_eq!(block.by_status(200).rptm_us.max(), Some(9_000));
    assert_eq!(block.custom.count_and_bytes(), CountAndBytes { count: 1, bytes: 55 });
}

/// A block with something in every field.
pub(crate) fn full() -> Block {
    let mut block = block(2, 1);
    for class in Class::ALL {
        let done = Finished {
            class,
            size: 9,
            rptm_us: 5,
            due_rptm_us: Some(6),
            request_size: 3,
            kind: Some(5),
            request_kind: Some(4),
            status: 206,
            custom: true,
            ..Finished::default()
        };
        block.finish(&Finished { offered_hit: true, embedded: true, first: true, ..done });
        block.finish(&done);
    }
    MissCause::ALL.into_iter().for_each(|cause| block.miss(cause, 3));
    CloseKind::ALL.into_iter().for_each(|kind| block.close_connection(kind, 5, 2));
    block.page(5, 10, 3);
    ErrorKind::all().for_each(|kind| block.count_error(kind));
    block.verified = VerificationStats { replies: 1, bytes: 2, uncompared: 4, digests: 3, due: 4, marked: 5 };
    (block.retried, block.reused, block.skipped_launches) = (1, 2, 6);
    block.fail_class(Class::Put);
    block.set_up_connection(Nanos::from_millis(1), Nanos::from_millis(1002));
    [&mut block.reads, &mut block.writes].into_iter().for_each(|hist| hist.record(4));
    block.finish(&Finished { version: HttpVersion::Http2, ..Finished::default() });
    block.streams = StreamStats {
        sent: 9,
        received: 8,
        sent_content: 3,
        received_content: 2,
        resets: 1,
        refused: 2,
        unprocessed: 3,
        goaways: 4,
        misdirected: 5,
        packets: 60,
        lost_packets: 6,
        alternatives: 7,
        broken_alternatives: 8,
        ..StreamStats::default()
    };
    [&mut block.streams.concurrent, &mut block.streams.per_connection]
        .into_iter()
        .for_each(|hist| hist.record(7));
    block.fail(503, 9, 100, true);
    let tls = &mut block.tls;
    for codes in [&mut tls.versions, &mut tls.ciphers, &mut tls.groups, &mut tls.alerts] {
        codes.add(40, 1);
    }
    for times in [&mut tls.full_us, &mut tls.resumed_us, &mut tls.early_us, &mut tls.ready_rptm_us] {
        times.record(300);
    }
    tls.refusals.at_mut(503).record(5, 6);
    tls.refused_handshakes = 7;
    tls.refused_faults.add("expired", 4);
    tls.accepted_faults.add("self_signed", 1);
    for breakdown in [&mut tls.transactions, &mut tls.connects, &mut tls.tunneled] {
        breakdown.record(5, 50);
    }
    (tls.offered, tls.early_refused, tls.stapled) = (2, 1, 3);
    tls.issuers.add("CA", 1);
    tls.staples.add("good", 3);
    let socks = &mut block.socks;
    socks.opened_us.record(400);
    (socks.with_password, socks.refused) = (3, 1);
    socks.transactions.record(5, 50);
    socks.hits.add(50);
    let kerberos = &mut block.kerberos;
    kerberos.login_us.record(900);
    kerberos.ticket_us.record(400);
    (kerberos.failed, kerberos.too_big) = (2, 1);
    for scheme in AuthScheme::ALL {
        block.auth_steps[scheme as usize].record(3, 30);
        block.authenticated[scheme as usize].record(3, 30);
        block.compounds[scheme as usize].exchanges.record(2);
    }
    block.latency.first_reply_byte_read_us.record(8);
    block.think_us.record(4);
    block.range_gen.spec_size.record(100);
    block.oid_gen = OidGen { need_repeat: 2, ..OidGen::default() };
    [
        &mut block.hit_since_transfer_ms,
        &mut block.miss_since_transfer_ms,
        &mut block.late_us,
        &mut block.ordinals,
        &mut block.pipeline_depth,
        &mut block.continue_us,
        &mut block.dns.rptm_us,
    ]
    .into_iter()
    .for_each(|hist| hist.record(4));
    [&mut block.cookies.sent, &mut block.cookies.received].into_iter().for_each(|hist| hist.record(4));
    (block.cookies.purged_fresh, block.cookies.purged_stale, block.cookies.updated) = (1, 1, 1);
    (block.dns.lookups, block.dns.cache_hits, block.dns.unplanned) = (2, 1, 1);
    block.validations.useful.record(1, 1);
    block.validations.useless.record(1, 1);
    (block.basic_marked, block.unmarked, block.first_hand_uploads) = (3, 2, 5);
    let server = block.servers.at_mut(0, "10.0.0.1:80");
    (server.requests, server.unmarked, server.bytes, server.failed) = (4, 1, 90, 2);
    server.rptm_us.record(7);
    server.bad_certificate = true;
    block.levels_mut().into_iter().for_each(|level| level.enter(Nanos::ZERO));
    block.unanswered.count(5_000_000_000);
    block.close(1_000_000_000);
    block
}

#[test]
fn blocks_survive_the_log_and_add_up() {
    let block = full();
    let bytes = postcard::to_stdvec(&block).unwrap();
    let read: Block = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(postcard::to_stdvec(&read).unwrap(), bytes);
    assert_eq!((read.ok_count(), &read.errors, &read.kinds), (block.ok_count(), &block.errors, &block.kinds));
    let mut twice = block.clone();
    twice.merge(&block);
    assert_eq!((twice.ok_count(), twice.failed_count()), (2 * block.ok_count(), 2 * block.failed_count()));
    assert_eq!((twice.xacts.last, twice.waiting.last, twice.conns.last), (2, 2, 2));
    assert_eq!(twice.unanswered.older_than(2.0), Some((2, 2)));
    assert_eq!((twice.pages.parts.sum(), twice.closes[1].uses.sum(), twice.missed[2].bytes), (6.0, 4.0, 6));
    assert_eq!(
        (twice.custom.count_and_bytes().count, twice.oid_gen.need_repeat),
        (2 + 2 * 2 * Class::COUNT as u64, 4)
    );
    let mut later = block.clone();
    later.concatenate(&block);
    assert_eq!((later.waiting.last, later.verified.digests, later.cookies.updated), (1, 6, 2));
}

#[test]
fn an_emptied_block_counts_nothing() {
    let mut block = full();
    block.clear();
    (block.kinds, block.request_kinds, block.failed_classes) = Default::default();
    (block.unusual_status, block.other_replies, block.servers) = Default::default();
    block.tls.refusals = ByStatus::default();
    assert_eq!(block, Block::new());
}

#[test]
fn an_idle_interval_is_small_in_the_log() {
    assert!(postcard::to_stdvec(&Block::new()).unwrap().len() < 360);
}
