//! The statistics that one event loop collects during one interval.

use polygraph_link::Nanos;
use serde::{Deserialize, Serialize};

use crate::bin_set::BinSet;
use crate::class::{Class, ClassStats};
use crate::clock_ahead::ClockAhead;
use crate::counts::{
    AuthScheme, Breakdown, CloseKind, CloseStats, CompoundStats, CookieStats, CountAndBytes, DnsStats,
    KindStats, Latency, OidGen, PageStats, RangeGen, ValidationStats, VerificationStats,
};
use crate::error::{ErrorCounts, ErrorKind};
use crate::fold::{Fold, fold_fields};
use crate::foreign::ForeignStats;
use crate::histogram::{CoarseHistogram, Histogram};
use crate::http_version::HttpVersion;
use crate::kerberos::KerberosStats;
use crate::level::Level;
use crate::miss_cause::MissCause;
use crate::servers::ByServer;
use crate::socks::SocksStats;
use crate::status::ByStatus;
use crate::streams::StreamStats;
use crate::summary_stats::SummaryStats;
use crate::tls::TlsStats;
use crate::unanswered::Unanswered;

/// The status of nearly all replies; only other codes are counted separately.
const USUAL_STATUS: u16 = 200;

/// How long TCP waits for an answer before it asks for a connection again (RFC 6298, section 2): a connection whose set-up takes so long
/// usually found the listen queue of its peer full, or a packet was lost. That is a second, of which a tick of the kernel's clock (10 ms at
/// most) may be over when the timer is set.
pub const SLOW_SETUP: Nanos = Nanos::from_millis(990);

/// A successful transaction, as one side saw it.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// Its class.
    pub class: Class,
    /// Response time in microseconds from the actual start to the last byte.
    pub rptm_us: u64,
    /// Response time in microseconds from the due time, if that is known; servers never know it.
    pub due_rptm_us: Option<u64>,
    /// Reply bytes, head and body.
    pub size: u64,
    /// Request bytes, head and body.
    pub request_size: u64,
    /// Number of the kind of the reply's content (see [`Header::contents`](crate::Header::contents)), if kinds
    /// are distinguished.
    pub kind: Option<usize>,
    /// The kind of the request's content, likewise.
    pub request_kind: Option<usize>,
    /// Status code of the reply; 0 if there is none.
    pub status: u16,
    /// Whether the status is in the agent's custom scope.
    pub custom: bool,
    /// Whether a perfect cache would have a copy: the request is basic and repeats a request for a cachable object.
    pub offered_hit: bool,
    /// The scheme of the request's credentials, if they were accepted.
    pub authenticated: Option<AuthScheme>,
    /// Whether the object is embedded in a page.
    pub embedded: bool,
    /// Whether no robot requested the object before.
    pub first: bool,
    /// The version of HTTP that carried it.
    pub version: HttpVersion,
    /// Whether it went through a SOCKS proxy.
    pub socks: bool,
    /// Whether TLS protected it.
    pub secure: bool,
}

impl Default for Finished {
    fn default() -> Self {
        Finished {
            class: Class::Miss,
            rptm_us: 0,
            due_rptm_us: None,
            size: 0,
            request_size: 0,
            kind: None,
            request_kind: None,
            status: USUAL_STATUS,
            custom: false,
            offered_hit: false,
            authenticated: None,
            embedded: false,
            first: false,
            version: HttpVersion::Http11,
            socks: false,
            secure: false,
        }
    }
}

/// The counters and histograms of one loop and one interval, or of any fold of those.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Finished transactions by [`Class`].
    pub classes: [ClassStats; Class::COUNT],
    /// Reply sizes of basic transactions for which a perfect cache would have had a hit: repeats of cachable objects.
    pub offered_hits: SummaryStats,
    /// Reply sizes of all other basic transactions.
    pub offered_misses: SummaryStats,
    /// Offered hits that were misses, by [`MissCause`].
    pub missed: [CountAndBytes; MissCause::COUNT],
    /// Milliseconds since the object's last transfer, for offered hits that were hits.
    pub hit_since_transfer_ms: Histogram,
    /// The same for offered hits that were misses although a complete copy could have been stored.
    pub miss_since_transfer_ms: Histogram,
    /// Hits that were not offered: no robot of this run had requested the object before, or it is not cachable.
    pub false_hits: CountAndBytes,
    /// Finished transactions by kind of content, by number; empty if kinds are not distinguished.
    pub kinds: Vec<KindStats>,
    /// Finished transactions with a content of the request, by its kind: response times and *request* sizes.
    pub request_kinds: Vec<Breakdown>,
    /// Finished transactions with a status other than 200, see [`Block::by_status`].
    pub unusual_status: ByStatus,
    /// Replies that are not the last ones of successful transactions: replies of failed transactions, and challenges.
    pub other_replies: ByStatus,
    /// Failed transactions of robots by class, as far as the request alone determines it; empty if there were none.
    failed_classes: Vec<u64>,
    /// Transactions, failed ones included, whose status is in the agent's custom scope.
    pub custom: Breakdown,
    /// Authentication steps that led to a further exchange, by [`AuthScheme`] of the challenge.
    pub auth_steps: [ClassStats; AuthScheme::COUNT],
    /// Finished transactions whose credentials were accepted, by [`AuthScheme`].
    pub authenticated: [ClassStats; AuthScheme::COUNT],
    /// Transactions of several exchanges, by the [`AuthScheme`] of the challenge.
    pub compounds: [CompoundStats; AuthScheme::COUNT],
    /// Times from the start of a transaction to its first and last bytes.
    pub latency: Latency,
    /// Statistics of generated ranges.
    pub range_gen: RangeGen,
    /// Statistics of the choice of objects.
    pub oid_gen: OidGen,
    /// Finished transactions for objects embedded in pages; all other transactions are direct.
    pub embedded: CountAndBytes,
    /// Finished transactions for objects that no robot had requested before.
    pub unique: u64,
    /// For each completed request, successful or not, its ordinal among the requests for its object: 1, 2, 3 and so on.
    /// The number of values n is the number of objects with at least n requests, so it is the rank of an object with n
    /// requests. If there are more objects than a robot's loop can count, each counted object represents several.
    pub ordinals: Histogram,
    /// Complete pages.
    pub pages: PageStats,
    /// Request sizes of finished transactions in bytes, head and body.
    pub req_size: Histogram,
    /// Errors by class, noted ones included.
    pub errors: ErrorCounts,
    /// Replies that were compared with the content that the servers must have sent.
    pub verified: VerificationStats,
    /// Transactions that were restarted on another connection after a persistent-connection race.
    pub retried: u64,
    /// Transactions that started on a connection that had been used before.
    pub reused: u64,
    /// Lateness of every start in microseconds: actual minus due time.
    pub late_us: Histogram,
    /// Think times that servers drew, in microseconds. They are counted when they begin.
    pub think_us: CoarseHistogram,
    /// Launches by the clock that robots skipped because requests for embedded objects and redirects took their place.
    pub skipped_launches: u64,
    /// Concurrent transactions: entered = started, left = finished or failed.
    pub xacts: Level,
    /// Transactions that wait for a connection.
    pub waiting: Level,
    /// Open connections.
    pub conns: Level,
    /// Open connections that are established: data could be sent or was received.
    pub established: Level,
    /// Open connections that wait for their next request.
    pub idle: Level,
    /// Live robots or servers.
    pub populus: Level,
    /// Time in microseconds until new connections took their first request: with SOCKS, CONNECT or TLS, until those were done. Not
    /// known of HTTP/2 without TLS, where the first request is part of the set-up.
    pub conn_setup_us: CoarseHistogram,
    /// Those of them that took [`SLOW_SETUP`] or longer.
    pub slow_setups: u64,
    /// Lifetime of closed connections in microseconds.
    pub conn_ttl_us: Histogram,
    /// Transactions per closed connection.
    pub conn_uses: Histogram,
    /// Closed connections by [`CloseKind`].
    pub closes: [CloseStats; CloseKind::COUNT],
    /// Depth of connections that were pipelined: more than one transaction at a time.
    pub pipeline_depth: Histogram,
    /// Cookies that messages carried.
    pub cookies: CookieStats,
    /// Name look-ups.
    pub dns: DnsStats,
    /// Time in microseconds until 100 (continue) arrived.
    pub continue_us: Histogram,
    /// Validations by the device, on the server side.
    pub validations: ValidationStats,
    /// Basic transactions whose requests carry the mark of a robot's transaction (`X-Xact`), on the server side. A device that asks by
    /// itself, as health checks do, has no such mark.
    pub basic_marked: u64,
    /// Requests for objects of the test without the mark of a robot's transaction (`X-Xact`), on the server side. They are counted when
    /// they begin. Requests for other URLs, such as most health checks, are not among them.
    pub unmarked: u64,
    /// Uploads (POST, PUT) of robots whose replies have the mark that a server made them for these requests (`X-Xact`).
    pub first_hand_uploads: u64,
    /// Finished transactions by [`HttpVersion`].
    pub versions: [Breakdown; HttpVersion::COUNT],
    /// Multiplexed connections and their streams.
    pub streams: StreamStats,
    /// Bytes of each successful read from a socket, and of each write to one.
    pub reads: CoarseHistogram,
    /// See `reads`.
    pub writes: CoarseHistogram,
    /// TLS connections and tunnels.
    pub tls: TlsStats,
    /// Connections through SOCKS proxies.
    pub socks: SocksStats,
    /// Exchanges with a KDC.
    pub kerberos: KerberosStats,
    /// How the clocks of servers differ from that of robots.
    pub clock: ClockAhead,
    /// Transactions with servers outside of the test.
    pub foreign: ForeignStats,
    /// Requests by server, on the server side; empty if an event loop has more than [`MAX_SERVERS`](crate::servers::MAX_SERVERS).
    pub servers: ByServer,
    /// Requests without an answer at the end. Those for foreign servers are not among them.
    pub unanswered: Unanswered,
}

fold_fields! {
    Block {
        classes, offered_hits, offered_misses, missed, hit_since_transfer_ms, miss_since_transfer_ms, false_hits, kinds, request_kinds,
        unusual_status, other_replies, failed_classes, custom, auth_steps, authenticated, compounds, latency, range_gen, oid_gen,
        embedded, unique, ordinals, pages, req_size, errors, verified, retried, reused, late_us, think_us, skipped_launches, conn_setup_us, slow_setups,
        conn_ttl_us, conn_uses, closes, pipeline_depth, cookies, dns, continue_us, validations, basic_marked, unmarked, first_hand_uploads, versions, streams, reads, writes, tls, socks, kerberos, clock, foreign, servers;
        xacts, waiting, conns, established, idle, populus, unanswered
    }
}

impl Block {
    /// An empty block. It grows to about a megabyte when its histograms are filled.
    pub fn new() -> Block {
        Block::default()
    }

    /// The statistics of one class.
    pub fn class(&self, class: Class) -> &ClassStats {
        &self.classes[class as usize]
    }

    /// The statistics of one class, to be added to.
    pub fn class_mut(&mut self, class: Class) -> &mut ClassStats {
        &mut self.classes[class as usize]
    }

    /// Counts a successful transaction.
    pub fn finish(&mut self, done: &Finished) {
        self.versions[done.version as usize].record(done.rptm_us, done.size);
        let stats = self.class_mut(done.class);
        stats.record(done.rptm_us, done.size);
        if let Some(due) = done.due_rptm_us {
            stats.due_rptm_us.record(due);
        }
        if done.request_size > 0 {
            self.req_size.record(done.request_size);
        }
        let (basic, hit) = (done.class.is_basic(), done.class == Class::Hit);
        let offered = basic && done.offered_hit;
        if basic {
            let sizes = if offered { &mut self.offered_hits } else { &mut self.offered_misses };
            sizes.record(done.size);
        }
        if hit && !offered {
            self.false_hits.add(done.size);
        }
        if done.embedded {
            self.embedded.add(done.size);
        }
        self.unique += u64::from(done.first);
        if done.status != USUAL_STATUS {
            self.unusual_status.at_mut(done.status).record(done.rptm_us, done.size);
        }
        if let Some(scheme) = done.authenticated {
            self.authenticated[scheme as usize].record(done.rptm_us, done.size);
        }
        if done.custom {
            self.custom.record(done.rptm_us, done.size);
        }
        if let Some(number) = done.request_kind {
            at_mut(&mut self.request_kinds, number).record(done.rptm_us, done.request_size);
        }
        if let Some(number) = done.kind {
            let kind = at_mut(&mut self.kinds, number);
            kind.replies.record(done.rptm_us, done.size);
            let counted =
                [(basic, &mut kind.basic), (offered, &mut kind.offered_hits), (hit, &mut kind.hits)];
            counted.into_iter().filter(|(yes, _)| *yes).for_each(|(_, tally)| tally.add(done.size));
        }
    }

    /// Counts a failed transaction whose request alone determines the class; the error is counted separately.
    pub fn fail_class(&mut self, class: Class) {
        *at_mut(&mut self.failed_classes, class as usize) += 1;
    }

    /// Failed transactions whose requests alone determine this class.
    pub fn failed_class(&self, class: Class) -> u64 {
        self.failed_classes.get(class as usize).copied().unwrap_or(0)
    }

    /// Counts the reply of a transaction that failed; the error is counted separately.
    pub fn fail(&mut self, status: u16, rptm_us: u64, size: u64, custom: bool) {
        self.other_replies.at_mut(status).record(rptm_us, size);
        if custom {
            self.custom.record(rptm_us, size);
        }
    }

    /// Counts the reply that demanded authentication by `scheme`, in a transaction that continues with an answer.
    pub fn challenge(&mut self, scheme: AuthScheme, status: u16, rptm_us: u64, size: u64, custom: bool) {
        self.auth_steps[scheme as usize].record(rptm_us, size);
        self.fail(status, rptm_us, size, custom);
    }

    /// Counts why an offered hit of `bytes` reply bytes was a miss. The transaction is counted by
    /// [`Block::finish`] as well.
    pub fn miss(&mut self, cause: MissCause, bytes: u64) {
        self.missed[cause as usize].add(bytes);
    }

    /// Counts how long ago, in milliseconds, the object of an offered hit was last transferred. Only misses whose copy
    /// could have been stored are counted ([`MissCause::is_of_storage`]). The two histograms distinguish a cache that
    /// evicts objects after some time from a cache that never stores some objects.
    pub fn since_transfer(&mut self, hit: bool, ms: u64) {
        let times = if hit { &mut self.hit_since_transfer_ms } else { &mut self.miss_since_transfer_ms };
        times.record(ms);
    }

    /// Counts a connection that was opened at `opened` and is ready for requests `now`.
    pub fn set_up_connection(&mut self, opened: Nanos, now: Nanos) {
        let took = now - opened;
        self.established.enter(now);
        self.conn_setup_us.record(took.as_micros());
        self.slow_setups += u64::from(took >= SLOW_SETUP);
    }

    /// Counts a connection that was closed after `uses` successful transactions. Do not count failed connections.
    pub fn close_connection(&mut self, kind: CloseKind, ttl_us: u64, uses: u64) {
        self.conn_ttl_us.record(ttl_us);
        self.conn_uses.record(uses);
        let closes = &mut self.closes[kind as usize];
        closes.uses.record(uses);
        closes.ttl_us.record(ttl_us);
    }

    /// Counts a complete page of `parts` replies.
    pub fn page(&mut self, rptm_us: u64, size: u64, parts: u64) {
        self.pages.rptm_us.record(rptm_us);
        self.pages.size.record(size);
        self.pages.parts.record(parts);
    }

    /// Counts an error.
    pub fn count_error(&mut self, kind: ErrorKind) {
        self.errors.count(kind);
    }

    /// Adds the block of another loop for the same interval.
    pub fn merge(&mut self, other: &Block) {
        self.fold(other);
        for (mine, theirs) in self.levels_mut().into_iter().zip(other.levels()) {
            mine.merge(theirs);
        }
        self.unanswered.merge(&other.unanswered);
    }

    /// Appends the block of a later interval.
    pub fn concatenate(&mut self, later: &Block) {
        self.fold(later);
        for (mine, theirs) in self.levels_mut().into_iter().zip(later.levels()) {
            mine.concatenate(theirs);
        }
        self.unanswered = later.unanswered;
    }

    /// Brings levels up to `now_ns`, the end of the interval.
    pub fn close(&mut self, now_ns: u64) {
        self.levels_mut().into_iter().for_each(|level| level.advance(Nanos::new(now_ns)));
    }

    /// Empties the block for the interval after `previous`, and continues with its levels.
    pub fn begin_after(&mut self, previous: &Block) {
        self.clear();
        for (mine, before) in self.levels_mut().into_iter().zip(previous.levels()) {
            *mine = before.carry();
        }
    }

    /// Forgets the bins of all histograms that are not in `wanted`; see [`Histogram::drop_bins`].
    pub fn keep_bins(&mut self, wanted: BinSet) {
        if wanted == BinSet::ALL {
            return;
        }
        let classes = std::mem::take(&mut self.classes);
        let (late_us, think_us) = (std::mem::take(&mut self.late_us), std::mem::take(&mut self.think_us));
        // Those of servers are few, and a list of figures needs them.
        let servers = std::mem::take(&mut self.servers);
        self.drop_bins();
        (self.classes, self.late_us, self.think_us, self.servers) = (classes, late_us, think_us, servers);
        let keep = |set: BinSet, histogram: &mut Histogram| {
            if !wanted.contains(set) {
                histogram.drop_bins();
            }
        };
        for ClassStats { rptm_us, due_rptm_us, size } in &mut self.classes {
            keep(BinSet::RESPONSE_TIMES, rptm_us);
            keep(BinSet::DUE_RESPONSE_TIMES, due_rptm_us);
            keep(BinSet::SIZES, size);
        }
        keep(BinSet::LATENESS, &mut self.late_us);
        if !wanted.contains(BinSet::LATENESS) {
            self.think_us.drop_bins();
        }
    }

    /// Empties the block, levels included.
    pub fn clear(&mut self) {
        Fold::clear(self);
        self.levels_mut().into_iter().for_each(|level| *level = Level::default());
        self.unanswered = Unanswered::default();
    }

    fn levels(&self) -> [&Level; 6] {
        [&self.xacts, &self.waiting, &self.conns, &self.established, &self.idle, &self.populus]
    }

    fn levels_mut(&mut self) -> [&mut Level; 6] {
        let Block { xacts, waiting, conns, established, idle, populus, .. } = self;
        [xacts, waiting, conns, established, idle, populus]
    }

    /// Number of successful transactions: those of all classes, and refusals of bad certificates.
    pub fn ok_count(&self) -> u64 {
        self.count_of(&Class::ALL) + self.tls.refusal_count()
    }

    /// Number of transactions that failed.
    pub fn failed_count(&self) -> u64 {
        self.errors.sum(ErrorKind::fails)
    }

    /// Number of successful transactions with servers outside of the test.
    pub fn foreign_count(&self) -> u64 {
        self.kinds.first().map_or(0, |foreign| foreign.replies.size.count())
    }

    /// Number of errors that were only noted.
    pub fn noted_count(&self) -> u64 {
        self.errors.sum(|kind| !kind.fails())
    }

    /// Reply bytes of successful transactions.
    pub fn ok_bytes(&self) -> f64 {
        self.bytes_of(&Class::ALL)
    }

    /// Number of finished transactions of some classes.
    pub fn count_of(&self, classes: &[Class]) -> u64 {
        classes.iter().map(|&class| self.class(class).size.count()).sum()
    }

    /// Reply bytes of finished transactions of some classes.
    pub fn bytes_of(&self, classes: &[Class]) -> f64 {
        classes.iter().map(|&class| self.class(class).size.sum()).sum()
    }

    /// Cachable misses, which fill a cache.
    pub fn fills(&self) -> CountAndBytes {
        let sizes = &self.class(Class::Miss).size;
        CountAndBytes { count: sizes.count(), bytes: sizes.sum() as u64 }
    }

    /// Share of finished transactions that failed (0 to 1); `None` without finished transactions.
    pub fn error_ratio(&self) -> Option<f64> {
        ratio(self.failed_count() as f64, (self.ok_count() + self.failed_count()) as f64)
    }

    /// Measured document hit ratio (0 to 1); `None` without basic transactions.
    pub fn hit_ratio(&self) -> Option<f64> {
        ratio(self.class(Class::Hit).size.count() as f64, self.count_of(&Class::BASIC) as f64)
    }

    /// Measured byte hit ratio (0 to 1).
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.class(Class::Hit).size.sum(), self.bytes_of(&Class::BASIC))
    }

    /// Offered document hit ratio (0 to 1).
    pub fn offered_hit_ratio(&self) -> Option<f64> {
        ratio(self.offered_hits.count as f64, self.count_of(&Class::BASIC) as f64)
    }

    /// Offered byte hit ratio (0 to 1).
    pub fn offered_byte_hit_ratio(&self) -> Option<f64> {
        ratio(self.offered_hits.sum, self.bytes_of(&Class::BASIC))
    }

    /// Offered hits that were misses with a counted cause, over all causes.
    pub fn missed_total(&self) -> CountAndBytes {
        let mut all = CountAndBytes::default();
        self.missed.iter().for_each(|&tally| all.merge(tally));
        all
    }

    /// Mean response time in microseconds over all classes.
    pub fn mean_rptm_us(&self) -> Option<f64> {
        self.rptm_us_summary().mean()
    }

    /// Response times of all classes together, from the actual start.
    pub fn rptm_us(&self) -> Histogram {
        self.over_classes(|class| &class.rptm_us)
    }

    /// Response times of all classes together, from the due time.
    pub fn due_rptm_us(&self) -> Histogram {
        self.over_classes(|class| &class.due_rptm_us)
    }

    /// Reply sizes of all classes together.
    pub fn sizes(&self) -> Histogram {
        self.over_classes(|class| &class.size)
    }

    /// Replies with this status, including those of failed transactions and challenges. Status 200 is computed as all
    /// finished transactions minus those with other codes.
    pub fn by_status(&self, status: u16) -> ClassStats {
        let mut found = if status == USUAL_STATUS {
            let all = ClassStats { rptm_us: self.rptm_us(), size: self.sizes(), ..ClassStats::default() };
            self.unusual_status.iter().fold(all, |left, (_, other)| left.without(other))
        } else {
            self.unusual_status.get(status).cloned().unwrap_or_default()
        };
        if let Some(others) = self.other_replies.get(status) {
            found.merge(others);
        }
        found
    }

    /// Status codes with statistics in [`Block::by_status`], in ascending order; 0 represents unknown codes.
    pub fn statuses(&self) -> Vec<u16> {
        let seen = |by: &ByStatus| by.iter().map(|(status, _)| status).collect::<Vec<_>>();
        let mut all = [vec![USUAL_STATUS], seen(&self.unusual_status), seen(&self.other_replies)].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The summary of [`Block::rptm_us`].
    pub fn rptm_us_summary(&self) -> SummaryStats {
        self.summary_over_classes(|class| &class.rptm_us)
    }

    /// The summary of [`Block::due_rptm_us`].
    pub fn due_rptm_us_summary(&self) -> SummaryStats {
        self.summary_over_classes(|class| &class.due_rptm_us)
    }

    /// The summary of [`Block::sizes`].
    pub fn sizes_summary(&self) -> SummaryStats {
        self.summary_over_classes(|class| &class.size)
    }

    fn summary_over_classes(&self, pick: impl Fn(&ClassStats) -> &Histogram) -> SummaryStats {
        let mut all = SummaryStats::default();
        self.classes.iter().for_each(|class| all.fold(&pick(class).summary()));
        all
    }

    fn over_classes(&self, pick: impl Fn(&ClassStats) -> &Histogram) -> Histogram {
        let mut all = Histogram::new();
        self.classes.iter().for_each(|class| all.merge(pick(class)));
        all
    }
}

/// The element with this index; the list grows if necessary.
fn at_mut<T: Default>(list: &mut Vec<T>, number: usize) -> &mut T {
    if list.len() <= number {
        list.resize_with(number + 1, T::default);
    }
    &mut list[number]
}

/// `part / whole`; `None` if `whole` is 0.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
pub(crate) mod tests;
