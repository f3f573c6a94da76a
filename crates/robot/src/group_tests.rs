//! Robots against a server made of a function, under a virtual clock.

use polygraph_link::Nanos;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use polygraph_link::{Link, SECOND};
use polygraph_stats::{Block, Class, ErrorKind, ErrorSample, Recorder};
use polygraph_traffic::content::{BodySource, Embeds, Encodings};
use polygraph_traffic::files::{File, Files};
use polygraph_traffic::headers::{HeaderChoice, HeaderRule};
use polygraph_traffic::{
    Behavior, Catalog, Content, ContentKind, Distr, IdSource, Method, Oid, RequestKind, Seed, Selector,
    UniqId,
};

use crate::RobotGroup;
use crate::load::pace::Pace;
use crate::request::generator::{Factors, RequestGenerator};
use crate::request::{Cause, Request};
use crate::settings::{Field, Load, Profile, Rules, Server, Session, Settings, ToldFreshness, Verify};
use crate::testing::{Answer, Ask, TestLink, object, with_life};

/// Pages of 20 kB with four images each; nothing is asked for again.
pub(crate) fn pages() -> Catalog {
    let image = Content::plain("image", Distr::Const(500.0), 1.0);
    let page = Content {
        embeds: Some(Embeds { kinds: Selector::only(ContentKind::of_index(1)), count: Distr::Const(4.0) }),
        mime_type: Some("text/html".into()),
        ..Content::plain("page", Distr::Const(20_000.0), 1.0)
    };
    Catalog { seed: Seed(3), contents: vec![page, image] }
}

/// One robot that asks two servers for pages, ten times a second.
pub(crate) fn settings(catalog: Catalog, change: impl FnOnce(&mut Profile)) -> Settings {
    let server = |last: u8| Server {
        authority: format!("10.0.0.{last}:80"),
        addresses: vec![SocketAddr::from(([10, 0, 0, last], 80))],
        behind: Vec::new(),
        bad_certificate: None,
        direct: 0,
        tls: false,
    };
    let field = Field {
        servers: vec![server(1), server(2)],
        direct: vec![Selector::only(ContentKind::FIRST)],
        catalog,
        marks_cachable: None,
        rules: Rules::default(),
        page_delay: 0.0,
        settle: 0.0,
        verify: Verify::Full,
        share_worlds: true,
        redirects: true,
        freshness: ToldFreshness::LifeCycle,
        substitutes: Vec::new(),
    };
    let mut profile = Profile::plain("R", 1, Load::Open { rate: 10.0 }, Behavior::default());
    profile.origins = Selector::even(vec![0, 1]);
    profile.embed_recur = 1.0;
    profile.requests_per_connection = Distr::Const(100.0);
    change(&mut profile);
    Settings {
        first_robot: 0,
        robots: 1,
        profiles: vec![Arc::new(profile)],
        share: None,
        field: Arc::new(field),
        launch_window: 0.0,
        open_limit: 1000,
        limited_by_host: false,
        seed: Seed(1),
        group: IdSource::reproducible(9, 9).fresh(),
        tolerance: crate::Tolerance::default(),
        share_phases: false,
        others_fill: false,
    }
}

/// Runs for so many seconds, then to the end of all transactions. Everything that began has ended.
pub(crate) fn run(link: &TestLink, settings: Settings, seconds: u64) -> Block {
    run_with_examples(link, settings, seconds).0
}

/// The same, with examples of errors.
pub(crate) fn run_with_examples(
    link: &TestLink,
    settings: Settings,
    seconds: u64,
) -> (Block, Vec<ErrorSample>) {
    let recorder = Recorder::new();
    let group = RobotGroup::new((**link).clone(), settings, recorder.clone(), IdSource::reproducible(1, 1));
    link.spawn(Rc::clone(&group).run(Nanos::ZERO));
    link.run(seconds * SECOND);
    group.set_pace(Pace::STOPPED);
    link.run((seconds + 100) * SECOND);
    let (block, examples) = recorder.hand_over(Box::new(Block::new()), link.now());
    assert_eq!(block.xacts.entered, block.xacts.left, "nothing waits for ever");
    (*block, examples)
}

pub(crate) fn errors(block: &Block) -> Vec<(ErrorKind, u64)> {
    block.errors.iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn pipelined_requests_go_where_they_belong() {
    let catalog = pages();
    // Replies come at full seconds, so pages of both servers arrive together.
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| {
            let page = object(&catalog, ask, "Content-Type: text/html\r\n");
            Answer::Reply(page, SECOND - ask.at % SECOND)
        }
    });
    let block = run(&link, settings(catalog, |robot| robot.pipeline = Some(Distr::Const(3.0))), 100);
    for ask in link.asked() {
        assert_eq!(ask.field("Host"), Some(&*ask.hop.ip().to_string()));
    }
    assert_eq!(errors(&block), []);
    assert!(block.pipeline_depth.max() == Some(3) && block.ok_count() > 800);
}

#[test]
fn who_waits_behind_a_broken_reply_in_a_pipeline_has_waited_since_the_first_attempt() {
    let catalog = pages();
    // The second reply of each pipeline is broken, and arrives when the first one is complete, after a second.
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| match (ask.before, ask.oid().is_embedded()) {
            (_, false) => Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), SECOND / 100),
            (2, true) => Answer::Reply(b"?\r\n\r\n".to_vec(), Nanos::ZERO),
            (_, true) => Answer::Reply(object(&catalog, ask, ""), SECOND),
        }
    });
    let block = run(&link, settings(catalog, |robot| robot.pipeline = Some(Distr::Const(3.0))), 100);
    assert!(block.errors[ErrorKind::PipelineCancelled] > 10, "{:?}", errors(&block));
    let longest = block.classes.iter().filter_map(|class| class.rptm_us.max()).max();
    assert!(longest.is_some_and(|us| us >= 2_000_000), "{longest:?}");
}

#[test]
fn the_body_of_a_request_goes_along_with_its_head() {
    let mut catalog = pages();
    catalog.contents.push(Content::plain("form", Distr::Unif { min: 1.0, max: 8000.0 }, 0.0));
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, ""), Nanos::ZERO)
    });
    let posts = |robot: &mut Profile| {
        robot.behavior.methods = Selector::only(Method::Post);
        robot.behavior.recurrence = 0.5;
        robot.post = Selector::only(ContentKind::of_index(2));
    };
    let block = run(&link, settings(catalog, posts), 20);
    assert_eq!(errors(&block), []);
    let posted = link.asked().iter().filter(|ask| ask.head.starts_with("POST")).count() as u64;
    // Small bodies that come behind their heads would wait for the acknowledgement of these.
    assert!(posted > 20 && block.writes.count() == link.asked().len() as u64, "{posted}");
}

#[test]
fn bodies_that_are_only_there_compressed_are_sent_so() {
    let identity = Encodings::IDENTITY;
    for (encodings, coding) in [
        (identity, None),
        (Encodings { gzip: true, ..identity }, None),
        (Encodings { identity: false, gzip: true }, Some("gzip")),
    ] {
        let (mut catalog, link) = small();
        catalog.contents.push(Content { encodings, ..Content::plain("form", Distr::Const(200_000.0), 0.0) });
        let settings = settings(catalog, |robot| {
            robot.behavior.methods = Selector::only(Method::Post);
            robot.behavior.recurrence = 0.5;
            robot.post = Selector::only(ContentKind::of_index(1));
        });
        assert_eq!(errors(&run(&link, settings, 2)), []);
        let posted: Vec<Ask> = link.asked().into_iter().filter(|ask| ask.head.starts_with("POST")).collect();
        assert!(posted.len() > 5);
        for ask in posted {
            let size: u64 = ask.field("Content-Length").unwrap().parse().unwrap();
            assert_eq!((ask.field("Content-Encoding"), size < 200_000), (coding, coding.is_some()));
        }
    }
}

#[test]
fn the_request_rate_is_that_of_all_requests_also_of_containers_in_containers() {
    // Pages of images and, one in four, of other pages: 4/(1-1) would not end, so those have no images.
    let mut catalog = pages();
    let inner = Content { name: "frame".into(), ..catalog.contents[0].clone() };
    catalog.contents[0].embeds =
        Some(Embeds { kinds: Selector::only(ContentKind::of_index(2)), count: Distr::Const(2.0) });
    catalog.contents.push(inner);
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), SECOND / 100)
    });
    // Each page leads to 2 frames and 8 images. 10/s over 500 s; deviation sqrt(500 * 10 * 11), five of them.
    let block = run(&link, settings(catalog, |_| {}), 500);
    assert_eq!(errors(&block), []);
    let all = block.ok_count() as f64;
    assert!((all - 5000.0).abs() < 1200.0, "{all}");
}

#[test]
fn who_waits_for_a_connection_is_not_forgotten() {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Const(100.0), 1.0)] };
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, ""), SECOND)
    });
    // One connection at a time, and after a while none can be opened.
    let limited = settings(catalog, |robot| {
        robot.open_limit = Some(1);
        robot.requests_per_connection = Distr::Const(1.0);
    });
    link.run_out_of_ports(5 * SECOND);
    let block = run(&link, limited, 4);
    assert!(matches!(errors(&block)[..], [(ErrorKind::NoPort, many)] if many > 5), "{:?}", errors(&block));
    assert_eq!(block.waiting.entered, block.waiting.left);
}

#[test]
fn all_requests_of_a_robot_carry_credentials_and_cookies() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask: &Ask| match ask.field("Proxy-Authorization") {
            Some(_) => {
                let fields = "Content-Type: text/html\r\nSet-Cookie: a=b\r\n";
                Answer::Reply(object(&catalog, ask, fields), SECOND / 4)
            }
            None => {
                let text =
                    "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
                Answer::Reply(text.into(), SECOND / 2)
            }
        }
    });
    let with_password = settings(catalog, |robot| {
        robot.load = Load::Open { rate: 100.0 };
        robot.pipeline = Some(Distr::Const(3.0));
        robot.proxies = vec!["10.9.9.9:3128".parse().unwrap()];
        robot.credentials = vec!["joe:secret".into()];
    });
    let block = run(&link, with_password, 20);
    assert_eq!(errors(&block), []);
    let asked = link.asked();
    // Only those that were on their way before the first challenge came have no password.
    let mut naked = asked.iter().filter(|ask| ask.field("Proxy-Authorization").is_none());
    assert!(naked.clone().count() > 1 && naked.next_back().unwrap().at < 2 * SECOND);
    let late = |ask: &&Ask| ask.at > 10 * SECOND;
    assert!(asked.iter().filter(late).all(|ask| ask.field("Cookie") == Some("a=b")));
}

#[test]
fn a_device_that_refuses_a_wrong_password_is_no_foreign_source() {
    let catalog = pages();
    let link = TestLink::new(|_| {
        let text = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
        Answer::Reply(text.into(), Nanos::ZERO)
    });
    let spoiled = settings(catalog, |robot| {
        robot.proxies = vec!["10.9.9.9:3128".parse().unwrap()];
        robot.credentials = vec!["joe:secret".into()];
        robot.auth_error = 1.0;
    });
    let block = run(&link, spoiled, 10);
    assert!(errors(&block).is_empty() && block.ok_count() > 10, "{:?}", errors(&block));
}

#[test]
fn a_connection_that_the_peer_closed_meanwhile_is_no_error_when_pipelining() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| match ask.before {
            0..5 => Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), SECOND / 100),
            _ => Answer::Close,
        }
    });
    let block = run(&link, settings(catalog, |robot| robot.pipeline = Some(Distr::Const(1.5))), 60);
    assert_eq!(errors(&block), []);
    assert!(block.retried > 10);
}

#[test]
fn files_of_a_document_root_are_found_in_caches() {
    let file = |name: &str| File { name: name.into(), bytes: vec![b'x'; 100] };
    let files = BodySource::Root(Arc::new(Files(vec![file("a"), file("b")])));
    let root = Content { source: files, size: None, ..Content::plain("root", Distr::Const(1.0), 1.0) };
    // A cache that has seen everything: all replies are of other transactions.
    let link = TestLink::new(|ask: &Ask| {
        let text = format!(
            "HTTP/1.1 200 OK\r\nX-Xact: {}\r\nContent-Length: 100\r\n\r\n{}",
            ask.field("X-Xact").unwrap(),
            "x".repeat(100)
        );
        Answer::Reply(text.into(), Nanos::ZERO)
    });
    let block = run(&link, settings(Catalog { seed: Seed(3), contents: vec![root] }, |_| {}), 10);
    assert_eq!(errors(&block), []);
    assert!(block.hit_ratio() == Some(1.0));
}

/// Small objects, and a server that has them.
fn small() -> (Catalog, TestLink) {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Const(100.0), 1.0)] };
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, ""), Nanos::ZERO)
    });
    (catalog, link)
}

#[test]
fn a_first_visit_is_paid_to_every_server() {
    for seed in 1..9 {
        let (catalog, link) = small();
        let settings = settings(catalog, |robot| {
            robot.behavior.recurrence = 0.9;
            // Without the visit nobody would ever ask one of them.
            let rare = 1e-9;
            robot.origins =
                Selector::weighted(if seed % 2 == 0 { [(0, 1.0), (1, rare)] } else { [(0, rare), (1, 1.0)] });
        });
        run(&link, Settings { seed: Seed(seed), ..settings }, 20);
        for server in ["10.0.0.1", "10.0.0.2"] {
            assert!(
                link.asked().iter().any(|ask| ask.hop.ip().to_string() == server),
                "{server}, seed {seed}"
            );
        }
    }
}

fn rule(name: &str, value: &str) -> HeaderRule {
    HeaderRule { prob: 1.0, what: HeaderChoice::One { name: name.into(), value: value.into() } }
}

/// How often a field, in small letters, is in the head.
fn count(ask: &Ask, name: &str) -> usize {
    ask.head.lines().filter(|line| line.to_lowercase().starts_with(name)).count()
}

#[test]
fn configured_fields_win() {
    let (catalog, link) = small();
    let settings = settings(catalog, |robot| {
        robot.headers = vec![
            rule("accept", "text/html"),
            rule("X-Own", "1"),
            rule("x-own", "2"),
            rule("Connection", "close"),
        ];
        robot.requests_per_connection = Distr::Const(1.0);
    });
    run(&link, settings, 2);
    let asked = link.asked();
    assert!(asked.len() > 5);
    for ask in asked {
        let fields = |name| count(&ask, name);
        assert_eq!((fields("accept:"), fields("connection:"), fields("x-own:")), (1, 1, 1), "{}", ask.head);
        assert_eq!((ask.field("Accept"), ask.field("X-Own")), (Some("text/html"), Some("1")));
    }
}

#[test]
fn fields_of_a_body_win_over_those_of_the_robot() {
    let (mut catalog, link) = small();
    catalog.contents[0].mime_type = Some("a/generated".into());
    catalog.contents[0].headers = vec![rule("Content-Type", "x/configured"), rule("X-Who", "content")];
    let settings = settings(catalog, |robot| {
        robot.headers = vec![rule("X-Who", "robot")];
        robot.behavior.methods = Selector::only(Method::Post);
        robot.post = Selector::only(ContentKind::FIRST);
    });
    run(&link, settings, 2);
    let asked = link.asked();
    assert!(asked.iter().any(|ask| ask.head.starts_with("POST ")));
    for ask in asked.iter().filter(|ask| ask.head.starts_with("POST ")) {
        let fields = |name| count(ask, name);
        assert_eq!((fields("content-type:"), fields("x-who:")), (1, 1), "{}", ask.head);
        assert_eq!((ask.field("Content-Type"), ask.field("X-Who")), (Some("x/configured"), Some("content")));
    }
}

/// The errors, but for the dates that redirects of these tests do not have.
fn dated(block: &Block) -> Vec<(ErrorKind, u64)> {
    errors(block).into_iter().filter(|(kind, _)| *kind != ErrorKind::NoDate).collect()
}

#[test]
fn a_redirect_leads_out_of_the_test_to_where_it_says() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask: &Ask| match ask.head.contains("/t04/") {
            // Images are elsewhere.
            true => {
                let text = "HTTP/1.1 302 Found\r\nX-Target: 10.1.0.1:80\r\nLocation: http://10.7.7.7:81/x\r\nContent-Length: 0\r\n\r\n";
                Answer::Reply(text.into(), Nanos::ZERO)
            }
            false if ask.head.contains(" /x ") => {
                Answer::Reply("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".into(), Nanos::ZERO)
            }
            false => Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), Nanos::ZERO),
        }
    });
    let block = run(&link, settings(catalog, |_| {}), 10);
    assert_eq!(dated(&block), []);
    let elsewhere: Vec<Ask> = link.asked().into_iter().filter(|ask| ask.head.contains(" /x ")).collect();
    assert!(elsewhere.len() > 5);
    assert!(elsewhere.iter().all(|ask| ask.hop == SocketAddr::from(([10, 7, 7, 7], 81))));
}

#[test]
fn a_redirect_that_is_not_from_our_servers_is_no_success() {
    for status in
        ["300 Multiple Choices", "301 Moved", "302 Found", "303 See Other", "307 Moved", "308 Moved"]
    {
        let astray = move |_: &Ask| {
            let text =
                format!("HTTP/1.1 {status}\r\nLocation: http://10.7.7.7/\r\nContent-Length: 0\r\n\r\n");
            Answer::Reply(text.into(), Nanos::ZERO)
        };
        let block = run(&TestLink::new(astray), settings(pages(), |_| {}), 10);
        let failed = block.failed_count();
        assert_eq!(errors(&block), [(ErrorKind::UnmarkedRedirect, failed)], "{status}");
        assert!(failed > 5 && block.ok_count() == 0, "{status}: {failed}");
        // A user who accepts foreign messages receives them, and a warning that nothing was verified.
        let mut tolerant = settings(pages(), |_| {});
        tolerant.tolerance.foreign_replies = true;
        let block = run(&TestLink::new(astray), tolerant, 10);
        let seen = block.verified;
        assert!(
            block.failed_count() == 0 && seen.due > 3 && seen.replies + seen.marked == 0,
            "{status}: {seen:?}"
        );
    }
}

#[test]
fn a_chain_of_redirects_ends() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask: &Ask| match ask.head.contains("/t04/") || ask.head.contains(" /login ") {
            // Visitors go in circles.
            true => {
                let text = "HTTP/1.1 302 Found\r\nX-Target: 10.1.0.1:80\r\nLocation: http://10.7.7.7/login\r\nContent-Length: 0\r\n\r\n";
                Answer::Reply(text.into(), Nanos::ZERO)
            }
            false => Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), Nanos::ZERO),
        }
    });
    let block = run(&link, settings(catalog, |_| {}), 10);
    let logins = link.asked().iter().filter(|ask| ask.head.contains(" /login ")).count() as u64;
    let chains = dated(&block)[0].1;
    assert_eq!(dated(&block), [(ErrorKind::RedirectLoop, chains)]);
    assert!(chains > 3 && logins == 20 * chains, "{logins} requests in {chains} chains");
}

#[test]
fn repeated_foreign_objects_are_offered_hits_if_they_say_so() {
    for (fields, offered) in [("", 0.8), ("Cache-Control: no-cache\r\n", 0.0)] {
        let link = TestLink::new(move |_| {
            Answer::Reply(
                format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx").into(),
                Nanos::ZERO,
            )
        });
        let settings = settings(pages(), |robot| {
            robot.foreign = 1.0;
            robot.behavior.recurrence = 0.8;
            robot.trace = Arc::new(vec!["http://10.7.7.7/".into()]);
        });
        let block = run(&link, settings, 200);
        assert_eq!(errors(&block), []);
        // 2000 draws: five standard errors are 0.045.
        let ratio = block.offered_hit_ratio().unwrap();
        assert!((ratio - offered).abs() < 0.05, "{ratio}");
    }
}

#[test]
fn loops_and_kinds_of_robots_share_the_trace_of_foreign_urls() {
    let trace: Vec<String> = (0..100).map(|n| format!("http://10.7.7.7/{n}")).collect();
    // Kinds of two, one, and two robots, of which the one in the middle has no trace; loops of two robots and of three.
    let foreign = settings(pages(), |robot| (robot.foreign, robot.trace) = (1.0, Arc::new(trace)));
    let kind = |count, foreign_share| {
        let profile = Profile { count, foreign: foreign_share, ..(*foreign.profiles[0]).clone() };
        Arc::new(profile)
    };
    let profiles = vec![kind(2, 1.0), kind(1, 0.0), kind(2, 1.0)];
    let mut urls: Vec<Rc<str>> = Vec::new();
    for (first_robot, robots) in [(0, 2), (2, 3)] {
        let settings = Settings { first_robot, robots, profiles: profiles.clone(), ..foreign.clone() };
        let mut generator = RequestGenerator::new(&settings, IdSource::reproducible(1, 1));
        let factors = Factors { recur: 1.0, special: 1.0 };
        for number in 0..50 {
            let profile = if first_robot == 0 { 0 } else { 2 * (number % 2) };
            let request = generator.next(
                &settings,
                profile,
                factors,
                Nanos::ZERO,
                &mut settings.seed.stream("test", 0),
            );
            urls.push(request.foreign.unwrap());
        }
    }
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), 100);
}

#[test]
fn foreign_urls_are_uploaded_to() {
    let (catalog, _) = small();
    let link =
        TestLink::new(|_| Answer::Reply("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx".into(), Nanos::ZERO));
    for (kind, method, line) in [
        (RequestKind::Basic, Method::Post, "POST /x HTTP/1.1"),
        (RequestKind::Upload, Method::Get, "PUT /x HTTP/1.1"),
        (RequestKind::Basic, Method::Head, "HEAD /x HTTP/1.1"),
        (RequestKind::Ims304, Method::Get, "GET /x HTTP/1.1"),
    ] {
        let before = link.asked().len();
        let settings = settings(catalog.clone(), |robot| {
            robot.foreign = 1.0;
            robot.trace = Arc::new(vec!["http://10.7.7.7/x".into()]);
            robot.behavior.kinds = Selector::only(kind);
            robot.behavior.methods = Selector::only(method);
            (robot.post, robot.upload) =
                (Selector::only(ContentKind::FIRST), Selector::only(ContentKind::FIRST));
        });
        let group = RobotGroup::new((*link).clone(), settings, Recorder::new(), IdSource::reproducible(1, 1));
        link.spawn(Rc::clone(&group).run(link.now()));
        link.run(link.now() + 2 * SECOND);
        group.set_pace(Pace::STOPPED);
        link.run(link.now() + SECOND);
        let asked = link.asked().split_off(before);
        assert!(asked.len() > 5);
        for ask in asked {
            let body = ask.field("Content-Length");
            assert_eq!(
                (ask.head.lines().next(), body.is_some()),
                (Some(line), line.starts_with('P')),
                "{}",
                ask.head
            );
        }
    }
}

#[test]
fn ranges_of_compressed_content_are_taken_as_they_are() {
    let mut catalog = pages();
    catalog.contents[0].encodings = Encodings { identity: true, gzip: true };
    let link = TestLink::new(|_| {
        // The end is within a tag, and the whole is smaller than the object that is not compressed.
        let head = "HTTP/1.1 206 Partial Content\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\
            Content-Range: bytes 10-14/700\r\nContent-Length: 5\r\nX-Target: a:80\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n\r\n<embe";
        Answer::Reply(head.into(), Nanos::ZERO)
    });
    let extent = |at| polygraph_traffic::ranges::Extent::Absolute(at);
    let rule = polygraph_traffic::ranges::RangeRule::From { first: extent(10), last: Some(extent(14)) };
    let settings = settings(catalog, |robot| {
        robot.accept_encoding = Some("gzip".into());
        robot.behavior.kinds = Selector::only(RequestKind::Range);
        robot.behavior.ranges = Selector::only(rule);
    });
    assert_eq!(errors(&run(&link, settings, 10)), []);
}

#[test]
fn best_effort_robots_wait_for_everything_on_a_page() {
    for pipeline in [None, Some(Distr::Const(2.0))] {
        let catalog = pages();
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask: &Ask| {
                let reply = object(&catalog, ask, "Content-Type: text/html\r\n");
                Answer::Reply(reply, if ask.oid().is_embedded() { SECOND / 2 } else { SECOND / 10 })
            }
        });
        let settings = settings(catalog, |robot| {
            robot.load = Load::Closed { think: None };
            robot.pipeline = pipeline.clone();
        });
        let block = run(&link, settings, 60);
        assert_eq!(errors(&block), []);
        let asked = link.asked();
        let (images, pages): (Vec<&Ask>, Vec<&Ask>) = asked.iter().partition(|ask| ask.oid().is_embedded());
        // Ten pages in six seconds, or a little less if images wait for each other.
        assert!((50..=101).contains(&pages.len()), "{} pages", pages.len());
        assert!(images.len().abs_diff(4 * pages.len()) <= 4, "{} images", images.len());
        for page in &pages {
            let open = images.iter().filter(|image| image.at < page.at && page.at < image.at + SECOND / 2);
            assert_eq!(open.count(), 0, "while a page is asked for at {:?}", page.at);
        }
    }
}

#[test]
fn idle_robots_ask_for_nothing_and_keep_no_connections() {
    let (catalog, link) = small();
    let settings = settings(catalog, |robot| {
        let idle = Distr::Const(5.0);
        robot.session = Some(Session { busy_s: Some(10.0), busy_xacts: None, busy_fill: None, idle });
    });
    let block = run(&link, settings, 600);
    assert_eq!(errors(&block), []);
    let asked = link.asked();
    let of_period = |ask: &Ask| (ask.at / SECOND) % 15;
    assert!(asked.iter().all(|ask| of_period(ask) < 10), "busy for 10 of 15 seconds");
    // 10/s in two thirds of 600 s; five standard errors.
    assert!((asked.len() as f64 - 4000.0).abs() < 5.0 * 4000f64.sqrt(), "{}", asked.len());
    let firsts = asked.iter().filter(|ask| ask.before == 0).count();
    assert!((80..=140).contains(&firsts), "{firsts} connections: two servers, 40 periods, 100 uses");
}

#[test]
fn idle_robots_do_not_catch_up() {
    for pipeline in [None, Some(Distr::Const(2.0))] {
        let catalog = pages();
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask| Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), SECOND / 2)
        });
        let settings = settings(catalog, |robot| {
            robot.open_limit = Some(1);
            robot.pipeline = pipeline;
            let idle = Distr::Const(8.0);
            robot.session = Some(Session { busy_s: Some(2.0), busy_xacts: None, busy_fill: None, idle });
        });
        let block = run(&link, settings, 60);
        assert_eq!(errors(&block), []);
        // The session is over for those who wait when the next request is due; one may just have been sent.
        let of_period = |ask: &Ask| ask.at % (10 * SECOND);
        assert!(link.asked().iter().all(|ask| of_period(ask) < 3 * SECOND));
        assert!(link.asked().len() > 10 && block.waiting.entered > 10);
        assert_eq!((block.waiting.entered, block.failed_count()), (block.waiting.left, 0));
    }
}

#[test]
fn robots_of_pages_offer_their_rate_from_the_first_second_on() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), SECOND / 1000)
    });
    let mut all = settings(catalog, |robot| {
        robot.load = Load::Open { rate: 0.05 };
        robot.count = 2000;
    });
    all.robots = 2000;
    // A tenth of what a robot needs to get over its first page: 100/s asked for, 1000 requests. Pages come in
    // bunches of about five, so five standard errors are 5 * sqrt(1000 * 5).
    let block = run(&link, all, 10);
    let begun = block.xacts.entered as f64;
    assert!((begun - 1000.0).abs() < 360.0, "{begun}");
}

#[test]
fn connections_are_used_as_often_as_the_distribution_says() {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Const(100.0), 1.0)] };
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, ""), Nanos::ZERO)
    });
    let uses = Distr::Zipf { n: 16 };
    let all = settings(catalog, |robot| {
        robot.load = Load::Open { rate: 100.0 };
        robot.requests_per_connection = uses.clone();
        robot.origins = Selector::only(0);
    });
    let block = run(&link, all, 400);
    // About 8,000 connections with a standard deviation of 4.6 uses; five standard errors.
    let (count, mean) = (block.conn_uses.count() as f64, block.conn_uses.mean().unwrap());
    assert!(count > 5_000.0 && (mean - uses.mean()).abs() < 5.0 * 4.6 / count.sqrt(), "{mean} of {count}");
    assert_eq!((block.conn_uses.min(), block.conn_uses.max()), (Some(1), Some(16)));
}

/// A request without a condition is a basic one, for a device as for the figures.
#[test]
fn what_has_no_life_cycle_is_not_validated() {
    for lives in [false, true] {
        let catalog = if lives { with_life(pages()) } else { pages() };
        let link = TestLink::new({
            let catalog = catalog.clone();
            move |ask| Answer::Reply(object(&catalog, ask, ""), Nanos::ZERO)
        });
        let settings = settings(catalog, |robot| robot.behavior.kinds = Selector::only(RequestKind::Ims200));
        let block = run(&link, settings, 20);
        let conditional = link.asked().iter().filter(|ask| ask.field("If-Modified-Since").is_some()).count();
        let count = |class: Class| block.class(class).size.count();
        let [basic, ims] = [count(Class::Miss) + count(Class::Hit), count(Class::Ims200)];
        assert!(
            (ims > 20 && conditional > 20) == lives && (basic > 20) != lives,
            "{lives}: {basic} {ims} {conditional}"
        );
        assert!(lives || ims == 0 && conditional == 0);
    }
}

#[test]
fn parts_of_a_loops_pages_are_its_own() {
    let settings = settings(pages(), |_| {});
    let mut generator = RequestGenerator::new(&settings, IdSource::reproducible(1, 1));
    let factors = Factors { recur: 0.0, special: 0.0 };
    let page = generator.next(&settings, 0, factors, Nanos::ZERO, &mut settings.seed.stream("test", 0));
    let parts: Vec<Oid> = settings.field.catalog.embedded(&page.oid).collect();
    assert_eq!(parts.len(), 4);
    let part = generator.follow_up(&page, Cause::Embedded, parts[0], Nanos::ZERO);
    assert!(generator.is_own(&page) && generator.is_own(&part));
    for request in [page, part] {
        let world = UniqId { mix: request.oid.world.mix ^ 1, ..request.oid.world };
        assert!(!generator.is_own(&Request { oid: Oid { world, ..request.oid }, ..request }));
    }
}
