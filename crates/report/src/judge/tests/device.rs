//! Runs whose limit was the device.

use polygraph_stats::record::settings::{ACCOUNTS, NO_ACCOUNTS};
use polygraph_stats::{Block, Class, Finished};

use super::*;
use crate::facts::SideFacts;

#[test]
fn error_share() {
    check(
        &Run { error: Some((20, ErrorKind::BadStatus)), ..Run::default() },
        VerdictOutcome::Failed,
        &["errors"],
    );
    check(
        &Run { error: Some((20, ErrorKind::Timeout)), ..Run::default() },
        VerdictOutcome::Failed,
        &["errors"],
    );
    check(&Run { error: Some((50, ErrorKind::Timeout)), ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn error_goal() {
    let run = Run {
        error: Some((3, ErrorKind::NoReply)),
        end: Some(EndReason::ErrorGoal { phase: "meas".into() }),
        stop_at: Some(12.0),
        ..Run::default()
    };
    check(&run, VerdictOutcome::Failed, &["error goal", "errors", "phase", "(samples)"]);
}

#[test]
fn a_device_that_cannot_follow() {
    check(&Run { capacity: 80.0, ..Run::default() }, VerdictOutcome::Failed, &["following", "growing"]);
    let limited = Run { capacity: 40.0, open_limit: 500, ..Run::default() };
    check(&limited, VerdictOutcome::Failed, &["errors"]);
}

#[test]
fn wrong_replies() {
    check(
        &Run { error: Some((500, ErrorKind::Stale)), ..Run::default() },
        VerdictOutcome::Failed,
        &["correctness"],
    );
    check(
        &Run { error: Some((1700, ErrorKind::UncachableHit)), ..Run::default() },
        VerdictOutcome::Valid,
        &["(correctness)"],
    );
}

#[test]
fn wrong_content_is_not_allowed_at_all() {
    use ErrorKind as K;
    for kind in [K::WrongObject, K::AlteredBody, K::PrivateLeak, K::WrongSize, K::UnacceptableCoding] {
        // A single transaction of the whole run.
        let run = Run { error: Some((2500, kind)), ..Run::default() };
        check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Failed, &["content"]);
    }
}

#[test]
fn one_bad_certificate_that_was_accepted_is_enough() {
    let run = Run { error: Some((2500, ErrorKind::BadCertificateAccepted)), ..Run::default() };
    check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Failed, &["certificates"]);
}

#[test]
fn refusals_of_bad_certificates_are_verified() {
    let refusing = |share| Run { refusals: Some(share), verify: false, ..Run::default() };
    // Nothing but refusals, and refusals besides content that nobody verified.
    assert_eq!(verdict(&refusing(1).logs()).0, "VALID");
    assert_eq!(verdict(&refusing(2).logs()).1, "unverified");
}

#[test]
fn hits_that_were_not_offered_are_only_a_warning() {
    let run = Run { error: Some((100, ErrorKind::FalseHit)), ..Run::default() };
    check(&run, VerdictOutcome::Valid, &["(correctness)"]);
}

#[test]
fn a_device_that_was_still_cold() {
    // 36 % of the hits are missed at the start of the primary phase, and one percent at its end.
    let cold = Run { cold: Some(8.0), phases: [4.0, 60.0, 2.0], rate: 200.0, ..Run::default() };
    check(&cold, VerdictOutcome::Valid, &["(trend)", "(trend)"]);
    check(&Run { cold: Some(1.0), ..cold }, VerdictOutcome::Valid, &[]);
}

#[test]
fn nobody_fails_where_there_is_no_device() {
    let direct = |run: &Run| {
        let mut client = run.client();
        client.log.header.settings.push(("device".into(), "none".into()));
        verdict(&[client, run.server()])
    };
    let (word, _, meaning) = direct(&Run::default());
    assert_eq!((&*word, &*meaning), ("VALID", "the bench sustained the load; there was no device"));
    for kind in [ErrorKind::BadStatus, ErrorKind::Timeout, ErrorKind::WrongObject, ErrorKind::Stale] {
        let (word, _, meaning) = direct(&Run { error: Some((10, kind)), ..Run::default() });
        assert_eq!(word, "INVALID (server)", "{kind:?}");
        assert!(!meaning.contains("device"), "{meaning}");
    }
    let own_limit = Run { error: Some((10, ErrorKind::TooManyOpen)), ..Run::default() };
    assert_eq!(direct(&own_limit).0, "INVALID (test)");
}

#[test]
fn replies_without_a_date_are_told() {
    let undated = |every| Run { error: Some((every, ErrorKind::NoDate)), ..Run::default() };
    check(&undated(5), VerdictOutcome::Valid, &["(dates)"]);
    let text = &fold(&undated(5).logs()).unwrap().verdict.findings[0].text;
    assert!(
        text.contains(" %) came straight from servers") && text.contains("the device removed it"),
        "{text}"
    );
    check(&undated(2500), VerdictOutcome::Valid, &[]);
    let planned = Run { workload_text: "mime_headers = [ \"Date: none\" ];".into(), ..undated(5) };
    check(&planned, VerdictOutcome::Valid, &[]);
}

/// Robots wait so long that few requests have failed when the phase ends.
#[test]
fn a_device_that_falls_silent_did_not_answer() {
    let dead = |from: f64| Run { silent_from: Some(from), think_s: 3.0, ..Run::default() };
    let (word, rule, _) = verdict(&dead(30.5).logs());
    assert_eq!((&*word, rule), ("FAILED (device)", "unanswered"));
    assert_eq!(verdict(&dead(33.8).logs()).0, "VALID");
}

#[test]
fn replies_that_nobody_verified_are_not_valid() {
    let none = Run { verify: false, ..Run::default() };
    let (word, rule, meaning) = verdict(&none.logs());
    assert_eq!(
        (&*word, rule, &*meaning),
        ("FAILED (device)", "unverified", "the device delivered replies that robots cannot verify")
    );
    let mut tolerant = none.client();
    tolerant.log.header.settings.push(("accepts foreign messages".into(), "yes".into()));
    assert_eq!(verdict(&[tolerant, none.server()]).0, "INVALID (test)");
    for (every, outcome) in [(20, "FAILED (device)"), (50, "VALID")] {
        let some = Run { unverified: Some(every), ..Run::default() };
        assert_eq!(verdict(&some.logs()).0, outcome, "one of {every}");
    }
}

#[test]
fn why_no_body_was_verified_is_told() {
    use polygraph_stats::VerificationStats;
    let told = |due, unmarked, other_contents| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        for phase in &mut facts.client.as_mut().unwrap().phases {
            let block = &mut phase.scope.as_mut().unwrap().block;
            let marked = block.ok_count() - due - unmarked;
            block.verified = VerificationStats { due, marked, ..VerificationStats::default() };
            (0..other_contents).for_each(|_| block.count_error(ErrorKind::OtherContents));
        }
        // The phases alone count here.
        facts.headline.as_mut().unwrap().scope.block.verified = VerificationStats::default();
        let verdict = judge(&facts);
        let finding = verdict.findings.into_iter().find(|finding| finding.rule == "unverified");
        finding.map(|finding| finding.text).unwrap_or_default()
    };
    for (text, phrase) in [
        (told(0, 0, 0), "because no reply of the workload has one: robots recognized"),
        (told(0, 5, 0), " by their marks, and 15 replies cannot be verified, because they were cut"),
        (told(5, 0, 0), "none of 15 bodies could be verified, because they have no transaction id"),
        (told(5, 0, 5), "because they are of other contents than robots have; robots recognized"),
    ] {
        assert!(text.contains(phrase), "{text}");
    }
}

#[test]
fn the_headline_tells_what_the_device_did() {
    for (kind, deed) in [
        (ErrorKind::BadStatus, "the device answered with errors"),
        (ErrorKind::UnmarkedRedirect, "the device redirected robots elsewhere"),
        (ErrorKind::Reset, "the device dropped connections"),
        (ErrorKind::BadHead, "the device sent broken messages"),
        (ErrorKind::Timeout, "the device did not sustain the load"),
        (ErrorKind::ConnectFailed, "the device refused connections"),
        (ErrorKind::WrongObject, "the device delivered wrong content"),
        (ErrorKind::BadCertificateAccepted, "the device accepted bad certificates"),
        (ErrorKind::Stale, "the device broke the rules of caching"),
    ] {
        let run = Run { error: Some((10, kind)), ..Run::default() };
        assert_eq!(verdict(&run.logs()).2, deed, "{kind:?}");
    }
    let dead = Run { error: Some((1, ErrorKind::ConnectFailed)), ..Run::default() };
    assert_eq!(verdict(&dead.logs()).2, "the device was unreachable");
}

/// nginx keeps the old `Expires` of copies that it validates, which is not the same as using them without validation.
#[test]
fn servers_know_whether_expired_copies_were_validated() {
    let run = Run { error: Some((20, ErrorKind::Expired)), ..Run::default() };
    let told = |confirmed: u64| {
        let mut facts = fold(&run.logs()).unwrap();
        for scope in facts.server.as_mut().unwrap().phases.iter_mut().filter_map(|phase| phase.scope.as_mut())
        {
            (0..confirmed).for_each(|_| scope.block.validations.useless.record(400, 200));
        }
        let verdict = judge(&facts);
        assert_eq!(
            verdict.headline(),
            "FAILED (device): the device broke the rules of caching",
            "{confirmed}"
        );
        verdict.findings.into_iter().find(|finding| finding.rule == "correctness").unwrap().text
    };
    assert!(told(0).ends_with(" transactions; the servers confirmed no copy (304)"), "{}", told(0));
    assert!(told(3).contains("the servers confirmed 3 copies (304), so at most that many"), "{}", told(3));
    assert!(told(100_000).contains("these may be validated copies that still show their old Expires"));
    let alone = fold(&[run.client()]).unwrap().verdict;
    assert!(alone.findings.iter().any(|finding| finding.text.ends_with(" transactions")), "{alone:#?}");
}

/// Robots that know less than the servers can find nothing wrong; that must not look like proof.
#[test]
fn bytes_that_were_not_compared_are_told() {
    check(&Run { compare: false, ..Run::default() }, VerdictOutcome::Valid, &["(compared)"]);
}

/// A hundred requests a second for half a minute, with response times below two seconds.
#[test]
fn requests_that_are_never_answered_are_failures_to_be() {
    let with = |unanswered| Run { unanswered, ..Run::default() };
    // Servers were working on 133 requests.
    check(&with((80, 200)), VerdictOutcome::Valid, &[]);
    check(&with((142, 200)), VerdictOutcome::Valid, &[]);
    check(&with((143, 200)), VerdictOutcome::Valid, &["(unanswered)"]);
    check(&with((200, 200)), VerdictOutcome::Valid, &["(unanswered)"]);
    check(&with((300, 1)), VerdictOutcome::Valid, &[]);
    // Those that wait no longer than others did will be answered.
    check(&with((200, 2)), VerdictOutcome::Valid, &[]);
    let failing = Run { error: Some((20, ErrorKind::BadStatus)), ..with((200, 200)) };
    check(&failing, VerdictOutcome::Failed, &["errors"]);
    check(&with((300, 200)), VerdictOutcome::Failed, &["unanswered"]);
    // Some that failed are not too many by themselves.
    let some = Run { error: Some((50, ErrorKind::Timeout)), ..with((200, 200)) };
    check(&some, VerdictOutcome::Failed, &["unanswered"]);
    let stopped = Run { stalls: [Some((10.0, 13.0)), None], ..with((300, 200)) };
    check(&stopped, VerdictOutcome::Invalid, &["(unanswered)", "stalls"]);
}

#[test]
fn requests_that_met_closed_connections_are_told() {
    let with = |sent_again| Run { sent_again, ..Run::default() };
    check(&with((2, 0)), VerdictOutcome::Valid, &["(sent again)"]);
    check(&with((2, 2)), VerdictOutcome::Valid, &[]);
    check(&Run { rate: 300.0, ..with((2, 0)) }, VerdictOutcome::Valid, &[]);
}

#[test]
fn connections_that_had_to_be_asked_for_twice_are_told() {
    let with = |setups: &[f64]| Run { setups: setups.to_vec(), ..Run::default() };
    check(&with(&[0.001, 0.9]), VerdictOutcome::Valid, &[]);
    check(&with(&[0.001, 1.03]), VerdictOutcome::Valid, &["(connecting)"]);
    // A network with this delay is no queue.
    check(&with(&[0.6, 1.03]), VerdictOutcome::Valid, &[]);
}

/// What servers outside of the test do is not the device's.
#[test]
fn failures_of_foreign_servers_are_not_those_of_the_device() {
    let foreign = |log: &mut crate::Log, share: u64| {
        for record in &mut log.log.records {
            if let Record::Interval(interval) = record {
                let failed = interval.block.errors[ErrorKind::BadStatus] / share;
                interval.block.foreign.started += failed;
                for _ in 0..failed {
                    interval.block.foreign.failed.count(ErrorKind::BadStatus);
                }
            }
        }
    };
    let mut client = Run { error: Some((10, ErrorKind::BadStatus)), ..Run::default() }.client();
    foreign(&mut client, 1);
    let (word, rule, _) = verdict(&[client, Run::default().server()]);
    assert_eq!((&*word, rule), ("INVALID (foreign server)", "foreign"));
    let mut client = Run { error: Some((10, ErrorKind::BadStatus)), ..Run::default() }.client();
    foreign(&mut client, 2);
    assert_eq!(
        verdict(&[client, Run::default().server()]).0,
        "FAILED (device)",
        "half of them are our servers'"
    );
    let mut client = Run { error: Some((100, ErrorKind::BadStatus)), ..Run::default() }.client();
    foreign(&mut client, 1);
    check_logs(&[client, Run::default().server()], VerdictOutcome::Valid, &["(foreign)"]);
}

/// Servers that refuse what robots sent, or what a device made of it.
#[test]
fn refused_credentials() {
    let logs = |refused: bool, marks: [&str; 2]| {
        let mut client = Run { error: Some((1, ErrorKind::OriginAuthAgain)), ..Run::default() }.client();
        let seen = refused.then_some((100, ErrorKind::CredentialsRefused));
        let mut server = Run { server_error: seen, ..Run::default() }.server();
        for (log, mark) in [&mut client, &mut server].into_iter().zip(marks) {
            log.log.header.settings.push((ACCOUNTS.to_owned(), mark.to_owned()));
        }
        [client, server]
    };
    assert_eq!(verdict(&logs(true, ["a", "b"])).0, "INVALID (test)");
    assert_eq!(
        verdict(&logs(true, ["a", "a"])).0,
        "FAILED (device)",
        "the device made other credentials of them"
    );
    assert_eq!(
        verdict(&logs(false, ["a", "b"])).0,
        "FAILED (device)",
        "the device refused them itself, or removed them"
    );
}

/// A device that reaches no server because it does not accept their certificate.
#[test]
fn certificates_that_the_device_refuses_are_told() {
    const CERTIFICATE_EXPIRED: u16 = 45;
    const PROTOCOL_VERSION: u16 = 70;
    let told = |alert, count| {
        let run = Run { error: Some((2, ErrorKind::BadStatus)), ..Run::default() };
        let mut facts = fold(&run.logs()).unwrap();
        facts.server.as_mut().unwrap().total.as_mut().unwrap().block.tls.alerts.add(alert, count);
        let verdict = judge(&facts);
        assert_eq!(verdict.word(), "FAILED (device)");
        verdict.findings[0].text.contains(
            "refused the certificate of the servers, as 9000 alerts say there (certificate_expired)",
        )
    };
    assert!(told(CERTIFICATE_EXPIRED, 9000));
    assert!(!told(CERTIFICATE_EXPIRED, 20), "too few to explain the failures");
    assert!(!told(PROTOCOL_VERSION, 9000));
}

/// What a device sends to servers more often than robots want it.
#[test]
fn requests_that_nobody_made_are_told() {
    let told = |more: u64| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        let robots = &facts.client.as_ref().unwrap().total.as_ref().unwrap().block;
        let others = robots.xacts.entered - robots.class(Class::Hit).size.count();
        facts.server.as_mut().unwrap().total.as_mut().unwrap().block.basic_marked = others + more;
        let verdict = judge(&facts);
        assert_eq!(verdict.outcome, VerdictOutcome::Valid, "{verdict:#?}");
        assert!(verdict.findings.iter().all(|finding| finding.text.contains(&format!(", {more} of the "))));
        verdict.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    // Of about 1,600 transactions that were no hits.
    assert_eq!((told(0), told(30)), (vec![], vec![]));
    assert_eq!(told(80), ["surplus"]);
}

#[test]
fn uploads_that_do_not_arrive_or_arrive_too_often_are_told() {
    // Uploads of robots, PUT and POST that arrived, and other requests that robots do not explain.
    let told_of = |sent: u64, [puts, posts]: [u64; 2], others: u64, change: fn(&mut RunFacts)| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        change(&mut facts);
        let add = |block: &mut polygraph_stats::Block, class, count| {
            let done = polygraph_stats::Finished { class, rptm_us: 9, size: 300, ..Default::default() };
            (0..count).for_each(|_| block.finish(&done));
        };
        let robots = &mut facts.client.as_mut().unwrap().total.as_mut().unwrap().block;
        add(robots, Class::Put, sent);
        add(robots, Class::Post, sent);
        let hits = robots.class(Class::Hit).size.count();
        let caused = robots.xacts.entered - hits - 2 * sent;
        let servers = &mut facts.server.as_mut().unwrap().total.as_mut().unwrap().block;
        add(servers, Class::Put, puts);
        add(servers, Class::Post, posts);
        servers.basic_marked = caused + others;
        let verdict = judge(&facts);
        let finding = verdict.findings.into_iter().find(|finding| finding.rule == "uploads");
        finding.map_or_else(Default::default, |finding| {
            (finding.weight.word(), finding.deed.unwrap_or_default(), finding.text)
        })
    };
    let ended: fn(&mut RunFacts) = |facts| facts.client.as_mut().unwrap().processes[0].unfinished = Some(0);
    let told = |sent, arrived, others| told_of(sent, arrived, others, ended);
    assert_eq!(told(100, [100, 98], 0), Default::default());
    // The server's log ends earlier than the client's, or has a hole; uploads had not ended when the client's log did.
    let early: fn(&mut RunFacts) = |facts| facts.server.as_mut().unwrap().processes[0].last_s = 20.0;
    let damaged: fn(&mut RunFacts) =
        |facts| facts.server.as_mut().unwrap().processes[0].missing.push("a record".into());
    for change in [early, damaged] {
        assert_eq!(told_of(100, [100, 10], 0, change), Default::default());
    }
    let open: fn(&mut RunFacts) = |facts| facts.client.as_mut().unwrap().processes[0].unfinished = Some(100);
    assert_eq!(told_of(100, [100, 200], 0, open), Default::default());
    let (weight, deed, text) = told(100, [100, 10], 0);
    assert_eq!((weight, deed), ("failed", "answered uploads itself"), "{text}");
    assert!(text.contains("the device answered the others itself"), "{text}");
    let (_, _, text) = told(100, [0, 0], 0);
    assert!(text.contains("got good replies, and 0 arrived"), "{text}");
    assert!(text.contains("the device answered all of them itself"), "{text}");
    let (weight, deed, text) = told(100, [100, 10], 90);
    assert_eq!((weight, deed), ("failed", "altered requests"), "{text}");
    // All POST arrived as PUT, or half of the PUT as POST; a few may be under way.
    for (arrived, told_so) in [
        ([200, 0], "(POST) got good replies, and 0 arrived at servers: about as many more PUT arrived"),
        ([50, 150], "(PUT) got good replies, and 50 arrived at servers: about as many more POST arrived"),
    ] {
        let (weight, deed, text) = told(100, arrived, 0);
        assert!((weight, deed) == ("failed", "altered requests") && text.contains(told_so), "{text}");
    }
    assert_eq!(told(100, [104, 96], 0), Default::default());
    // Some POST were lost, and each PUT was sent twice.
    let (weight, deed, text) = told(100, [200, 70], 0);
    assert_eq!((weight, deed), ("failed", "answered uploads itself"), "{text}");
    let (weight, _, text) = told(100, [100, 200], 0);
    assert!(
        weight == "warning" && text.contains("; 100 of these are POST, which nobody may send again"),
        "{text}"
    );
    let (weight, _, text) = told(100, [200, 100], 0);
    assert!(weight == "warning" && text.ends_with("do not cover the same time"), "{text}");
}

/// Replies that look right, but of which the servers of the run know nothing: those of a server left over from another test.
#[test]
fn replies_that_none_of_the_servers_made_are_told() {
    fn total(side: &mut Option<SideFacts>) -> &mut Block {
        &mut side.as_mut().unwrap().total.as_mut().unwrap().block
    }
    // The share of the replies that are no hits, about 1,600, for which a request arrived.
    let told = |arrived: f64, change: fn(&mut RunFacts)| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        let robots = total(&mut facts.client);
        let replies = robots.xacts.entered - robots.class(Class::Hit).size.count();
        total(&mut facts.server).xacts.entered = (replies as f64 * arrived) as u64;
        change(&mut facts);
        judge(&facts).findings.iter().any(|finding| finding.rule == "unasked")
    };
    let all_told = [0.0, 0.5, 0.8, 0.98].map(|arrived| told(arrived, |_| ()));
    assert_eq!(all_told, [true, true, true, false]);
    let damaged = |facts: &mut RunFacts| facts.server.as_mut().unwrap().processes[0].end = None;
    assert!(!told(0.0, damaged), "the end of the server's log is missing");
    let tolerated = |facts: &mut RunFacts| total(&mut facts.client).verified.replies = 0;
    assert!(!told(0.0, tolerated), "replies of other servers are expected");
    let other = |facts: &mut RunFacts| {
        let robots = total(&mut facts.client);
        (0..std::mem::take(&mut robots.verified.replies))
            .for_each(|_| robots.count_error(ErrorKind::OtherContents));
    };
    assert!(told(0.0, other), "the other servers have other contents");
    // All robots upload, and whoever answers does so as a server or without its marks.
    let uploaded = |first_hand| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        let robots = total(&mut facts.client);
        let uploads = robots.xacts.entered;
        robots.classes = Default::default();
        let done = Finished { class: Class::Put, rptm_us: 9, size: 300, ..Finished::default() };
        (0..uploads).for_each(|_| robots.finish(&done));
        robots.first_hand_uploads = if first_hand { uploads } else { 0 };
        total(&mut facts.server).xacts.entered = 0;
        let rules = judge(&facts).findings.into_iter().map(|finding| finding.rule);
        rules.filter(|rule| ["unasked", "uploads"].contains(rule)).collect::<Vec<_>>()
    };
    assert_eq!((uploaded(true), uploaded(false)), (vec!["unasked"], vec!["uploads"]));
}

#[test]
fn connections_that_a_device_does_not_use_are_told() {
    // Open connections to servers, those of them that wait for another request, and the most that robots had.
    let told = |open: u64, idle: u64, robots: u64| {
        let mut facts = fold(&Run::default().logs()).unwrap();
        let scope = |side: &mut Option<SideFacts>, change: &dyn Fn(&mut Block)| {
            let phases = &mut side.as_mut().unwrap().phases;
            phases
                .iter_mut()
                .filter_map(|phase| phase.scope.as_mut())
                .for_each(|scope| change(&mut scope.block));
        };
        scope(&mut facts.client, &|block| block.established.peak = robots);
        scope(&mut facts.server, &|block| {
            (block.established.last, block.idle.last, block.xacts.last) = (open, idle, 3);
        });
        judge(&facts).findings.iter().any(|finding| finding.rule == "unused connections")
    };
    assert!(told(400, 10, 20));
    assert!(!told(400, 300, 20), "they have carried requests");
    assert!(!told(90, 0, 20), "a few are opened before they are needed");
    assert!(!told(400, 0, 400), "a pool that is no larger than what robots open");
}

#[test]
fn freshness_that_the_device_changed_is_told() {
    let changed = |kind| Run { error: Some((50, kind)), ..Run::default() };
    check(&changed(ErrorKind::FreshnessChanged), VerdictOutcome::Valid, &["(freshness)"]);
    check(&changed(ErrorKind::MadeStorable), VerdictOutcome::Valid, &["(storable)"]);
}

#[test]
fn lengths_that_replies_to_head_misstate_are_wrong() {
    let run = Run { error: Some((50, ErrorKind::HeadLength)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["correctness"]);
}

/// Tickets that servers cannot open, because their keytab has other keys or because the device altered them.
#[test]
fn tickets_without_a_key() {
    let logs = |seen| {
        let client = Run { error: Some((1, ErrorKind::KerberosRefused)), ..Run::default() }.client();
        [client, Run { server_error: Some((100, seen)), ..Run::default() }.server()]
    };
    assert_eq!(verdict(&logs(ErrorKind::TicketKey)).0, "INVALID (test)");
    assert_eq!(verdict(&logs(ErrorKind::CredentialsRefused)).0, "FAILED (device)");
}

/// Proxies need not serve robots that have no credentials.
#[test]
fn proxies_that_demand_credentials() {
    let logs = |kind, mark: &str| {
        let mut client = Run { error: Some((1, kind)), ..Run::default() }.client();
        client.log.header.settings.push((ACCOUNTS.to_owned(), mark.to_owned()));
        [client, Run::default().server()]
    };
    assert_eq!(verdict(&logs(ErrorKind::SocksCredentials, "a")).0, "INVALID (test)");
    assert_eq!(verdict(&logs(ErrorKind::SocksNoMethod, NO_ACCOUNTS)).0, "INVALID (test)");
    assert_eq!(verdict(&logs(ErrorKind::SocksNoMethod, "a")).0, "FAILED (device)", "robots have credentials");
    assert_eq!(verdict(&logs(ErrorKind::SocksDenied, "a")).0, "FAILED (device)");
    assert_eq!(verdict(&logs(ErrorKind::ProxyCredentials, NO_ACCOUNTS)).0, "INVALID (test)");
    assert_eq!(
        verdict(&logs(ErrorKind::ProxyCredentials, "a")).0,
        "FAILED (device)",
        "others have credentials"
    );
}

/// Who lets most robots pass without credentials or certificates does not demand these.
#[test]
fn demands_that_most_requests_do_not_meet_are_failures() {
    use ErrorKind::{AuthorityCertificate, ProxyCredentials, SocksCredentials, SocksNoMethod, TlsRefused};
    // One of so many transactions fails like that; the others are over SOCKS and TLS, too.
    let logs = |every, kind, role: &str| {
        let mut client = Run { error: Some((every, kind)), ..Run::default() }.client();
        let settings = [(ACCOUNTS, NO_ACCOUNTS), ("device", role)];
        client.log.header.settings.extend(settings.map(|(name, value)| (name.into(), value.into())));
        for record in &mut client.log.records {
            if let Record::Interval(interval) = record {
                for _ in 0..interval.block.ok_count() {
                    interval.block.socks.transactions.record(9, 300);
                    interval.block.tls.transactions.record(9, 300);
                }
                interval.block.tls.alerts.add(116, interval.block.errors[TlsRefused]);
            }
        }
        [client, Run::default().server()]
    };
    for kind in [ProxyCredentials, SocksCredentials, SocksNoMethod, AuthorityCertificate, TlsRefused] {
        for (every, word) in [(10, "FAILED (device)"), (3, "FAILED (device)"), (1, "INVALID (test)")] {
            assert_eq!(verdict(&logs(every, kind, "proxy")).0, word, "{kind:?}, one of {every}");
        }
    }
    // A device that stands for the servers is no proxy of the robots, and neither are servers.
    for (role, word) in
        [("surrogate", "FAILED (device)"), ("balancer", "FAILED (device)"), ("none", "INVALID (server)")]
    {
        assert_eq!(verdict(&logs(1, ProxyCredentials, role)).0, word, "{role}");
    }
    let text =
        |every| fold(&logs(every, ProxyCredentials, "proxy")).unwrap().verdict.findings[0].text.clone();
    assert!(text(10).ends_with("and most requests passed without"), "{}", text(10));
    // A proxy may protect one of several servers.
    let protected = |requests: u64| {
        let [client, mut server] = logs(10, ProxyCredentials, "proxy");
        for record in &mut server.log.records {
            if let Record::Interval(interval) = record {
                let arrived = interval.block.xacts.entered;
                interval.block.servers.at_mut(0, "10.0.0.1:80").requests = arrived;
                interval.block.servers.at_mut(1, "10.0.0.2:80").requests = requests;
            }
        }
        verdict(&[client, server]).0
    };
    assert_eq!([protected(0), protected(9)], ["INVALID (test)", "FAILED (device)"]);
}

#[test]
fn devices_that_demand_certificates() {
    let demanding = |code| {
        let mut client = Run { error: Some((1, ErrorKind::TlsRefused)), ..Run::default() }.client();
        for record in &mut client.log.records {
            if let Record::Interval(interval) = record {
                let refused = interval.block.errors[ErrorKind::TlsRefused];
                interval.block.tls.alerts.add(code, refused);
            }
        }
        [client, Run::default().server()]
    };
    assert_eq!(verdict(&demanding(116)).0, "INVALID (test)", "certificate_required");
    let (word, _, meaning) = verdict(&demanding(80));
    assert_eq!(word, "FAILED (device)");
    assert!(meaning.contains("failed in TLS handshakes"), "{meaning}");
}

#[test]
fn devices_that_refuse_a_kind_of_requests() {
    let refusing = |failed, every| {
        let mut client = Run::default().client();
        for record in client.log.records.iter_mut().step_by(every) {
            if let Record::Interval(interval) = record {
                (0..failed).for_each(|_| interval.block.fail_class(Class::Head));
            }
        }
        [client, Run::default().server()]
    };
    check_logs(&refusing(1, 1), VerdictOutcome::Failed, &["kinds"]);
    check_logs(&refusing(1, 10), VerdictOutcome::Valid, &[]);
}

#[test]
fn devices_that_mix_up_servers() {
    let noted = |count, kind| Run { server_error: Some((count, kind)), ..Run::default() };
    check(&noted(20, ErrorKind::Misrouted), VerdictOutcome::Failed, &["misrouted"]);
    let once = Run { server_error_until: 1.0, ..noted(1, ErrorKind::Misrouted) };
    check(&once, VerdictOutcome::Valid, &["(misrouted)"]);
    check(&noted(20, ErrorKind::HostChanged), VerdictOutcome::Valid, &["(host)"]);
    let wrong = noted(20, ErrorKind::Misrouted);
    let mut client = wrong.client();
    client.log.header.settings.retain(|(name, _)| name != "device");
    client.log.header.settings.push(("device".to_owned(), "balancer".to_owned()));
    check_logs(&[client, wrong.server()], VerdictOutcome::Valid, &[]);
}

/// A device that answers 55 of 100 requests, or servers that do, in a phase too short to see the level settle.
#[test]
fn short_phases_with_few_replies() {
    let quick = Run { phases: [0.0, 4.0, 0.0], means: [0.01; 2], ..Run::default() };
    let slow = Run { capacity: 55.0, unanswered: (80, 1), ..quick.clone() };
    let decided = |logs: &[crate::Log]| {
        let (word, rule, _) = verdict(logs);
        (word, rule)
    };
    let of = |word: &str, rule| (word.to_owned(), rule);
    assert_eq!(decided(&[slow.client(), quick.server()]), of("FAILED (device)", "unfinished"));
    assert_eq!(decided(&slow.logs()), of("INVALID (test)", "unfinished"), "servers have the requests");
    assert_eq!(decided(&[slow.client()]), of("INVALID (test)", "unfinished"), "nobody knows about servers");
    let unsent = Run { unanswered: (0, 0), ..slow.clone() };
    let unsent = [unsent.client(), quick.server()];
    assert_eq!(decided(&unsent), of("INVALID (test)", "unfinished"), "robots wait for something else");
    let late = Run { unanswered: (80, 1), means: [2.5; 2], ..quick.clone() };
    let late = [late.client(), quick.server()];
    assert_eq!(decided(&late), of("INVALID (test)", "unfinished"), "replies only take long");
    let fair = Run { capacity: 80.0, ..quick.clone() };
    assert_eq!(fold(&[fair.client(), quick.server()]).unwrap().verdict.outcome, VerdictOutcome::Valid);
    // A queue that grows by 2 a second for 9 s; the last requests had waited for nearly 2 s.
    let behind = Run { phases: [0.0, 9.0, 0.0], capacity: 70.0, unanswered: (150, 1), ..quick.clone() };
    let longer = Run { phases: behind.phases, ..quick.clone() };
    assert_eq!(decided(&[behind.client(), longer.server()]), of("FAILED (device)", "unfinished"));
    let settled = Run { capacity: 1e6, means: [1.5; 2], ..behind.clone() };
    let few = fold(&[settled.client(), longer.server()]).unwrap().verdict;
    assert_eq!(
        few.outcome,
        VerdictOutcome::Valid,
        "replies take as long at the end as at the start: {few:#?}"
    );
    let long = Run { phases: [0.0, 30.0, 0.0], ..slow };
    assert_eq!(decided(&[long.client(), quick.server()]).1, "following");
}

#[test]
fn a_server_that_nobody_asks_is_told_unless_its_certificate_is_bad() {
    for (bad_certificate, rules) in [(false, &["(idle server)"][..]), (true, &[])] {
        let mut client = Run::default().client();
        client.log.header.settings.push(("device".into(), "balancer".into()));
        let mut server = Run::default().server();
        for record in &mut server.log.records {
            if let Record::Interval(interval) = record {
                let requests = interval.block.xacts.entered;
                interval.block.servers.at_mut(0, "10.0.0.1:80").requests = requests;
                interval.block.servers.at_mut(1, "10.0.0.2:80").bad_certificate = bad_certificate;
            }
        }
        check_logs(&[client, server], VerdictOutcome::Valid, rules);
    }
}
