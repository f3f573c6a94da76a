//! The table of rules.

use std::sync::LazyLock;

use polygraph_stats::block::SLOW_SETUP;

use super::{
    FindingSeverity, Findings, accepting, blame, contents, digests, disconnected, ended, explained, foreign,
    framing, freshness, generator, kinds, lateness, logs, outside, overload, replies, roles, routing, sample,
    sent_again, stalls, starved, surplus, throttled, trend, unanswered, unasked, unfinished, unmarked,
    unused, uploads, verified,
};
use crate::facts::RunFacts;
use crate::mixed::{MIXED, STARTS_APART_S};
use crate::text;

/// A rule of the verdict.
pub struct Rule {
    /// Name, as in findings. Neighbouring rules may share a name.
    pub name: &'static str,
    /// The condition of the rule, with its thresholds.
    pub looks_at: String,
    /// The most severe effect of a violation.
    pub says: FindingSeverity,
    check: fn(&RunFacts, &mut Findings),
}

impl Rule {
    pub(super) fn apply(&self, facts: &RunFacts, found: &mut Findings) {
        (self.check)(facts, found);
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({})", self.name)
    }
}

/// All rules, in the order in which they are applied.
pub fn all() -> &'static [Rule] {
    static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(table);
    &TABLE
}

fn percent(share: f64) -> String {
    text::percent(share, 4)
}

fn table() -> Vec<Rule> {
    use FindingSeverity::{Failed, Invalid, Warning};
    let mut rules = Vec::new();
    let mut add = |name, looks_at: String, says, check: fn(&RunFacts, &mut Findings)| {
        rules.push(Rule { name, looks_at, says, check });
    };
    add(
        "interrupted",
        "a client was stopped or died, or its log is damaged or was not closed; a server was stopped or died, or \
         its log ended, before the end of the primary phase (a server without traffic, or one after which requests succeeded as before: warning); the test would never have ended"
            .into(),
        Invalid,
        logs::interrupted,
    );
    add(
        "one side",
        "client logs are missing; or server logs are missing where the origin servers may have caused the \
         failures: no reply was successful, most failures were replies 502, 503 or 504, or no device is named (otherwise missing \
         server logs: warning)"
            .into(),
        Invalid,
        logs::one_side,
    );
    add(
        "elsewhere",
        "without a workload file: no request arrived at the servers, and robots had other ports (`--origin`) than those at \
         which the servers listened"
            .into(),
        Invalid,
        logs::elsewhere,
    );
    add(
        unasked::UNASKED,
        format!(
            "more replies have the mark of servers that made them for their requests (`X-Xact`) than requests arrived at the servers of the \
             run, by more than {} and {:.0}: somebody else answered",
            percent(blame::ERRORS_MAX),
            surplus::LEAST
        ),
        Invalid,
        unasked::unasked,
    );
    add(
        MIXED,
        format!(
            "the logs do not come from one run: a client had ended before another one started, or clients have different plans for the length of a primary phase; workloads or versions of the program \
             differ, or processes started more than {} s apart (warning)",
            STARTS_APART_S
        ),
        Invalid,
        logs::mixed,
    );
    add(
        "phase",
        "the primary phase was cut short, or nothing was measured in it (none planned: warning)".into(),
        Invalid,
        logs::phase,
    );
    add(
        "gaps",
        format!(
            "more than {} of the primary phase, and more than {} s, have no statistics: the bench stalled",
            percent(logs::LOST_MAX),
            logs::LOST_LEAST_S
        ),
        Invalid,
        logs::gaps,
    );
    // The cause of stalls comes before them.
    add(
        throttled::THROTTLED,
        format!(
            "a quota of processor time (control groups) stopped the event loops of a process on either side for more than {} of the \
             time that `stalls` looks at (more than {}: warning)",
            percent(throttled::SHARE_MAX),
            percent(throttled::TOLD_SHARE)
        ),
        Invalid,
        throttled::throttled,
    );
    add(
        "stalls",
        format!(
            "a process on either side stalled for more than {} s at a stretch, or for more than {} and {} s in \
             total, or for more than {}, in the primary phase or in the phase in which the run ended as failed (shorter stalls: warning)",
            stalls::LONGEST_S,
            percent(stalls::SHARE_MAX),
            stalls::LEAST_S,
            percent(stalls::SHORT_SHARE_MAX)
        ),
        Invalid,
        stalls::stalls,
    );
    add(
        "content",
        "wrong, altered or leaked content, or a coding that was not accepted (`c62`, `c201` to `c203`, `c205`); a \
         single such reply in the whole run suffices"
            .into(),
        Failed,
        replies::content,
    );
    add(
        "certificates",
        "content arrived of a server that shows a bad certificate on purpose (`certificate_fault`, `c256`); a single such reply in the \
         whole run suffices"
            .into(),
        Failed,
        replies::certificates,
    );
    add(
        contents::CONTENTS,
        format!(
            "more than {} of the replies in the whole run carry the mark of a server with another seed, other \
             sizes or other contents than the client has (`c211`; fewer: warning). Nothing then counts against the \
             device, unless the logs of both sides record the same contents: in that case the device made the mark \
             (`content`, FAILED)",
            percent(contents::OTHER_MAX)
        ),
        Invalid,
        contents::contents,
    );
    add(
        "compared",
        format!(
            "less than {} of the body bytes could be compared with what the servers must have sent",
            percent(contents::COMPARED_MIN)
        ),
        Warning,
        contents::compared,
    );
    add(
        "saturated",
        format!(
            "the busiest event loop on either side was busy for more than {} of the primary phase",
            percent(generator::BUSY_MAX)
        ),
        Invalid,
        generator::saturated,
    );
    add(
        "late",
        format!(
            "more than 1 % of the starts were late by more than {} ms or {} of the mean response time, whichever \
             is longer",
            generator::LATE_LEAST_MS,
            percent(generator::LATE_SHARE)
        ),
        Invalid,
        generator::late,
    );
    add(
        "late",
        format!(
            "more than 1 % of the servers' think times ended late by more than {} ms or {} of the servers' mean \
             response time, whichever is longer; a device may have been slow because of that if it is {} of the time for which transactions \
             were open, or more",
            lateness::THINK_LATE_MS,
            percent(generator::LATE_SHARE),
            percent(lateness::EXCUSE_SHARE)
        ),
        Invalid,
        lateness::late_servers,
    );
    add(
        "samples",
        format!(
            "fewer than {} transactions ended in the primary phase (below {}: warning)",
            sample::MIN,
            sample::FEW
        ),
        Invalid,
        sample::samples,
    );
    add(
        sample::SHORT,
        format!(
            "of the transactions that ended in a primary phase, more than {} may have started before it (more than {}: warning): the \
             phase is not much longer than a transaction",
            percent(sample::BEFORE_MAX),
            percent(sample::BEFORE_TOLD)
        ),
        Invalid,
        sample::short,
    );
    add(
        "offered",
        format!(
            "robots started fewer transactions than planned, by more than {} and by more than chance explains, and \
             the cause was neither a connection limit, nor unanswered pages whose embedded \
             objects the robots could not request (unanswered pages: warning), nor launches that robots owed to \
             large pages before the phase",
            percent(overload::GAP_MAX)
        ),
        Invalid,
        overload::offered,
    );
    add(
        "resources",
        format!(
            "more than {} of the transactions failed because ports or descriptors ran out, or because of other \
             faults of the local system",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        generator::resources,
    );
    add(
        accepting::REFUSED,
        format!(
            "in the primary phase, or in the phase in which the run ended as failed, servers refused connections \
             because they had no file descriptors left: more than {} of their transactions; errors of the device \
             are then no evidence",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        accepting::refused,
    );
    add(
        accepting::LISTEN_QUEUE,
        format!(
            "in the same time, connections found the listen queue of a server full: more than {} of the servers' \
             transactions (fewer: warning); errors of the device are then no evidence",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        accepting::listen_queue,
    );
    add(
        "names",
        format!(
            "more than {} of the transactions failed because the name server that robots query gave no usable \
             answer (fewer: warning); or robots without a device failed, and the name server gave them addresses that the workload \
             does not put behind the name, or at which robots reached nobody",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        outside::names,
    );
    add(
        "tickets",
        format!(
            "more than {} of the transactions failed because the KDC that robots ask for tickets of Kerberos gave \
             none that is usable (fewer: warning)",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        outside::tickets,
    );
    add(
        "network",
        format!(
            "more than {} of the transactions failed because the network had no route to the address (fewer: \
             warning)",
            percent(generator::RESOURCES_MAX)
        ),
        Invalid,
        outside::network,
    );
    add(
        foreign::FOREIGN,
        format!(
            "more than {} of the transactions failed at servers outside of the test, which the workload names with foreign URLs (fewer, \
             but as large a share of those with such servers: warning). Nobody can tell whether these servers or the device failed, so \
             these transactions count in none of the rules about the device",
            percent(blame::ERRORS_MAX)
        ),
        Invalid,
        foreign::foreign,
    );
    add(
        "errors",
        format!(
            "more than {} of the transactions failed because of what the device sent or because it took too long; \
             counted only while all origin servers are known to run (afterwards: `origin`, INVALID). INVALID (test) if \
             robots gave up because think times of the servers were longer than their lifetime, or lacked connections \
             because those for which servers were thinking occupied more than {} of what robots may open, or if \
             servers demanded credentials or certificates that robots do not have, or refused credentials and know others than the robots have, or their keytab lacks the keys of the robots' tickets, \
             or nothing in TLS was common to both, or, unless most of those that met it succeeded, a proxy demanded credentials of robots without any, \
             or the device a certificate of robots without one (TLS 1.3), or it showed that of an authority (`c260`); \
             INVALID (server) if robots refused the servers' own certificate in a tunnel. So many failures in another phase \
             cause a warning",
            percent(blame::ERRORS_MAX),
            percent(explained::OCCUPIED_MAX)
        ),
        Failed,
        replies::errors,
    );
    add(
        kinds::KINDS,
        format!(
            "in the primary phase, more than {} of the requests of a kind (PUT, POST, HEAD, conditional, no-cache, range) failed, at least {}, \
             although not too many of all transactions did (`errors`)",
            percent(kinds::FAILED_MAX),
            kinds::LEAST
        ),
        Failed,
        kinds::kinds,
    );
    add(
        "following",
        format!(
            "in the second half of the primary phase fewer transactions ended than started, by more than {} and by \
             more than chance explains, and the number of concurrent transactions rose throughout, not only at the \
             end",
            percent(overload::GAP_MAX)
        ),
        Failed,
        overload::following,
    );
    add(
        "growing",
        "concurrent transactions grew throughout the primary phase".into(),
        Failed,
        overload::growing,
    );
    add(
        "correctness",
        format!(
            "stale, foreign, truncated or misdirected replies, or hits that break the rules of caching, each in \
             more than {} of the transactions (fewer, and hits that were not offered, `c35`: warning). Old copies (`c33`, `c206`, `c207`) are only \
             counted while no server stands still for {} s or longer, nor for {} s afterwards (else: warning)",
            percent(replies::WRONG_MAX),
            lateness::GIVE_UP_MS / 1e3,
            disconnected::RECOVERY_S
        ),
        Failed,
        replies::correctness,
    );
    add(
        uploads::UPLOADS,
        format!(
            "more than {} of the uploads that succeeded, or of those by one method (POST, PUT), did not arrive at servers as such (the device \
             answered them itself, or changed the method), or could not be verified there because \
             they had no `X-Upload`; or more arrived than were sent (warning)",
            percent(blame::ERRORS_MAX)
        ),
        Failed,
        uploads::uploads,
    );
    // Replies of others are not verified either, which is the lesser evil.
    add(
        "unverified",
        format!(
            "no reply of the whole run could be verified, or more than {} of those replies in the primary phase \
             that deliver an object of our servers could not be verified (INVALID if robots were configured to \
             accept foreign messages, to cut all replies short or to spoil all passwords (`auth_error`); replies without bodies that carry our marks: \
             warning)",
            percent(verified::UNVERIFIED_MAX)
        ),
        Failed,
        verified::verified,
    );
    add(
        routing::MISROUTED,
        format!(
            "in the whole run, more than {} of the requests that arrived at servers were for another server of the test, as `X-Target` says \
             (`c257`; fewer, or of a surrogate whose servers have addresses instead of names: warning), and the \
             device is not called a balancer (`--balancer`). INVALID (name server) if robots looked up names and there was no device",
            percent(replies::WRONG_MAX)
        ),
        Failed,
        routing::misrouted,
    );
    add(
        "clock",
        format!(
            "the time-of-day clock jumped by more than {} ms; the clocks of client and servers, on several hosts, differ by two seconds or \
             more, as `Date` of first-hand replies tells (warning)",
            generator::CLOCK_STEP_MAX_MS
        ),
        Invalid,
        generator::clock,
    );
    add(
        "dates",
        format!(
            "the `Date` of first-hand replies is off by more than a minute (`c28`) in more than {} of the \
             transactions (fewer: warning), on one host; with several hosts, their clocks are the cause (INVALID). Or such replies have \
             no `Date` (`c27`), in more than {} of the transactions (warning)",
            percent(replies::WRONG_MAX),
            percent(replies::WRONG_MAX)
        ),
        Failed,
        outside::dates,
    );
    add(
        "unanswered",
        format!(
            "at the end of a primary phase, requests were waiting for an answer, longer than for any that came, for 1 s at least, \
             and servers were not working on them: with those that failed, they are more than {} of the transactions; or robots \
             without a rate spent more than {} of their time on requests that failed or were not answered; or no reply came in the \
             last {} s or more of the phase, although many were to be expected (fewer such requests, but more than {} and at least {}, that \
             had waited for {} s: warning)",
            percent(blame::ERRORS_MAX),
            percent((unanswered::WASTED_MAX * 1e3).round() / 1e3),
            unanswered::SILENT_S,
            percent(unanswered::NEWS_SHARE),
            unanswered::NEWS_LEAST,
            unanswered::NEWS_AGE_S
        ),
        Failed,
        unanswered::unanswered,
    );
    add(
        unanswered::PAUSE,
        format!(
            "within a primary phase of a steady load, no reply arrived in successive intervals of the log (`--stats_cycle`) that last {} s or more and more than two mean response times, \
             although many were to be expected, and answers came later; neither side of the bench stalled",
            unanswered::SILENT_S
        ),
        Warning,
        unanswered::pause,
    );
    // What was never answered comes before what was answered too late.
    add(
        unfinished::UNFINISHED,
        format!(
            "in a primary phase that is too short for `following`, fewer transactions ended than started, by more than {}. FAILED if they \
             ended as often in its first half as in its second, and servers were not working on those that are missing; else INVALID (test). \
             If fewer are missing, FAILED in the same case, provided that replies took longer and longer",
            percent((unfinished::OPEN_MAX * 1e3).round() / 1e3)
        ),
        Failed,
        unfinished::unfinished,
    );
    add(
        "error goal",
        "the run ended because too many transactions failed (because of faults of the local system: INVALID)"
            .into(),
        Failed,
        replies::error_goal,
    );
    add(
        ended::ENDED,
        "the process of a device that the program started ended during the run, and nobody asked it to: the message tells the signal or \
         the exit code"
            .into(),
        Failed,
        ended::ended,
    );
    // What a device was too slow for comes before the reason.
    add(
        starved::STARVED,
        format!(
            "a device that the program started was too slow, and for more than {} of the time that `stalls` looks at, and more than \
             {} s, its threads were ready to run while others had the processors of its host: it got less than {} of what it could have \
             used. Its slowness is then no evidence (if it was quick enough: warning). Or programs on this host waited for disks for \
             more than {} of this time: warning, because the device itself may have kept them busy",
            percent(starved::SHARE_MAX),
            starved::LEAST_S,
            percent(starved::OWN_LEAST),
            percent(starved::DISKS_MAX)
        ),
        Invalid,
        starved::starved,
    );
    add(
        freshness::FRESHNESS,
        format!(
            "in the primary phase, the device changed `Expires` or `max-age` in more than {} of the replies that may be stored, or removed \
             them or `Last-Modified` (`c254`)",
            percent(replies::WRONG_MAX)
        ),
        Warning,
        freshness::freshness,
    );
    add(
        freshness::STORABLE,
        format!(
            "in the primary phase, more than {} of the replies that servers made for the request are of those that they forbid to store \
             (`Cache-Control`), but arrived without that (`c261`)",
            percent(replies::WRONG_MAX)
        ),
        Warning,
        freshness::storable,
    );
    add(
        digests::DIGESTS,
        "in the whole run, `Content-MD5` of replies was not the digest of their bodies, although these were right byte for byte (`c259`)"
            .into(),
        Warning,
        digests::digests,
    );
    add(
        framing::FRAMING,
        "in the whole run, replies that robots received, or requests that servers received, had both `Content-Length` and \
         `Transfer-Encoding` (`c78`)"
            .into(),
        Warning,
        framing::framing,
    );
    add(
        routing::HOST,
        format!(
            "the device changed `Host`, or the host in the URL, of more than {} of the requests that arrived at servers (`c258`)",
            percent(replies::WRONG_MAX)
        ),
        Warning,
        routing::host,
    );
    add(
        routing::IDLE,
        format!(
            "behind a surrogate or balancer, no request arrived at one of several servers in the measured phases, although at least {} would have with equal shares",
            roles::SHARE_LEAST
        ),
        Warning,
        routing::idle,
    );
    add(
        "connecting",
        format!(
            "in the primary phase, more than {} of the robots' new connections took {} s or longer until their first \
             request could be sent, and the quickest less than half of that: a listen queue was full, or packets were lost",
            percent(generator::RESOURCES_MAX),
            SLOW_SETUP.as_f64() / 1e9
        ),
        Warning,
        accepting::connecting,
    );
    add(
        unused::UNUSED,
        format!(
            "at the end of the last primary phase, {} or more connections to servers were open that had carried no request, and more than robots \
             ever had to the device at the same time",
            unused::LEAST
        ),
        Warning,
        unused::unused,
    );
    add(
        "sent again",
        format!(
            "in the primary phase, connections that robots used again were closed without a reply to more than {} of \
             requests",
            percent(sent_again::SENT_AGAIN_MAX)
        ),
        Warning,
        sent_again::sent_again,
    );
    add(
        surplus::SURPLUS,
        format!(
            "more plain GET requests of robots (with `X-Xact`) arrived at servers than robots had transactions other than hits and \
             uploads, by more than {} and by more than {}: the device sends requests more than once, or fetches copies in the background",
            percent(blame::ERRORS_MAX),
            surplus::LEAST
        ),
        Warning,
        surplus::surplus,
    );
    add(
        unmarked::UNMARKED,
        format!(
            "in the whole run, more than {} of the requests that arrived at servers, and at least {}, were for objects of the test but had no \
             `X-Xact`, which all requests of robots have: the device asks for objects by itself, or removes the field",
            percent(unmarked::SHARE_MAX),
            unmarked::LEAST
        ),
        Warning,
        unmarked::unmarked,
    );
    add(
        "trend",
        format!(
            "under a steady load the mean response time still rose or fell through the primary phase by more than \
             {}, or the document hit ratio by more than {} points, and not by chance: the warm-up was too short",
            percent(trend::RPTM_MAX),
            trend::HITS_MAX
        ),
        Warning,
        trend::trend,
    );
    rules
}
