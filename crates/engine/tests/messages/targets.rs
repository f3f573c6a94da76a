//! What is fuzzed: every reader of foreign bytes, on any bytes. None may panic, and what a reader finds must not
//! depend on the pieces in which the bytes arrive.

use std::sync::Arc;

use polygraph_kerberos::Fresh;
use polygraph_kerberos::login::{Login, LoginStep, is_request};
use polygraph_kerberos::service::{self, ProvenKeys, ServiceKey};
use polygraph_kerberos::{CipherKey, EncryptionType, Moment, Principal, error_code, keytab};
use polygraph_origin::names::ServerNames;
use polygraph_origin::request::{Request, RequestReader};
use polygraph_origin::settings::{OriginConfig, ServerProfile};
use polygraph_robot::exchange::reply::{self, Progress, ReplyMeta, ReplyReader};
use polygraph_tls::certificate;
use polygraph_tls::staple::Staple;
use polygraph_traffic::content::Encodings;
use polygraph_traffic::{Catalog, Content, ContentKind, Distr, Seed, Selector, UniqId};
use polygraph_wire::auth::access::{Access, AccessRequest, ConnectionAccess, Scheme};
use polygraph_wire::auth::handshake::{ClientHandshake, TokenFrame};
use polygraph_wire::auth::ntlm::{Account, Uniqueness};
use polygraph_wire::auth::{basic, challenges, digest, spnego};
use polygraph_wire::cookie::{self, SetCookie};
use polygraph_wire::head::Header;
use polygraph_wire::marks::Marks;
use polygraph_wire::markup::{LinkTags, MarkupEvent, Scanner};
use polygraph_wire::multipart::{self, MultipartPiece};
use polygraph_wire::range::{ContentRange, RangeSet, write_range};
use polygraph_wire::raw_uris::UriScanner;
use polygraph_wire::socks;
use polygraph_wire::worlds::{AbortMark, WorldMark};
use polygraph_wire::{BodyReader, Framing, alt_svc, checksum, coding, date, foreign, uri, url};

/// A target: its name, which is also that of its corpus, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 15] = [
    ("request", request),
    ("reply", reply),
    ("url", url),
    ("marks", marks),
    ("chunked", chunked),
    ("multipart", multipart),
    ("range", range),
    ("cookie", cookie),
    ("auth", auth),
    ("handshake", handshake),
    ("kerberos", kerberos),
    ("socks", socks),
    ("staple", staple),
    ("markup", markup),
    ("fields", fields),
];

/// Size of the pieces in which `data` is to arrive: 1 to 64, or all at once.
fn step(data: &[u8]) -> usize {
    data.last().map_or(1, |byte| usize::from(byte % 64) + 1)
}

/// The results of reading `data` whole and in pieces must be equal.
fn whole_and_cut<R: PartialEq + std::fmt::Debug>(
    data: &[u8],
    read: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> R,
) {
    let whole = read(&mut std::iter::once(data));
    let cut = read(&mut data.chunks(step(data)));
    assert_eq!(whole, cut, "pieces of {}", step(data));
}

/// The two parts of `data` around the first line end.
fn two(data: &[u8]) -> (&[u8], &[u8]) {
    let at = data.iter().position(|&b| b == b'\n').unwrap_or(data.len());
    (&data[..at], data.get(at + 1..).unwrap_or_default())
}

/// An origin server with a content type of every form that paths can have.
fn config() -> OriginConfig {
    let plain = |name: &str| Content::plain(name, Distr::Const(1000.0), 0.5);
    let coded = Content { encodings: Encodings { identity: true, gzip: true }, ..plain("coded") };
    let dressed = Content { extensions: Selector::only(".gif".to_owned()), ..plain("dressed") };
    let catalog = Catalog { seed: Seed(1), contents: vec![plain("plain"), coded, dressed] };
    let kinds = (0..3).map(ContentKind::of_index).collect();
    OriginConfig {
        catalog: Arc::new(catalog),
        profiles: vec![ServerProfile::plain("fuzzed", kinds)],
        seed: Seed(1),
        group: UniqId::default(),
        classic: false,
        ignore_urls: false,
        accept_foreign_msgs: false,
        share_worlds: true,
        all_names: Vec::new(),
    }
}

/// What an origin server reads.
pub fn request(data: &[u8]) {
    thread_local!(static CONFIG: OriginConfig = config());
    CONFIG.with(|config| {
        let names = ServerNames::new(&["host:80".to_owned(), "*.suffix:80".to_owned()], false);
        let reader = RequestReader { config, profile: &config.profiles[0], names: &names, all_names: &names };
        let (mut rest, mut scratch) = (data, Vec::new());
        // Requests may be pipelined.
        loop {
            let mut request = Request::default();
            match reader.read(rest, &mut request, &mut scratch) {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
            assert!(request.head_size > 0 && request.head_size <= rest.len());
            rest = &rest[request.head_size..];
        }
    });
}

/// Counts content.
#[derive(Default)]
struct Taken(u64);

impl reply::ContentSink for Taken {
    fn begin(&mut self, _: &ReplyMeta) {}

    fn take(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// What a robot reads: to any request, to HEAD, and while it awaits 100 (continue).
pub fn reply(data: &[u8]) {
    for (to_head, awaits) in [(false, false), (true, false), (false, true)] {
        for step in [data.len().max(1), step(data)] {
            let mut reader = ReplyReader::new(to_head, awaits);
            let mut taken = Taken::default();
            for piece in data.chunks(step).chain(std::iter::once(&b""[..])) {
                match reader.feed(piece, &mut taken) {
                    Ok(Progress::Partial) => {}
                    Ok(Progress::Continue { .. }) => reader.stop_awaiting(),
                    Ok(Progress::Complete { rest }) => {
                        assert!(rest <= piece.len().max(data.len()));
                        break;
                    }
                    Err(_) => break,
                }
            }
            assert_eq!(reader.meta().map_or(0, |meta| meta.body_bytes), taken.0);
            assert!(taken.0 <= data.len() as u64);
        }
    }
}

/// URLs of requests, links and redirects.
pub fn url(data: &[u8]) {
    if let Some(oid) = url::parse(data) {
        assert_eq!(url::parse(&oid.path()), Some(oid));
    }
    let (base, reference) = two(data);
    for reference in [reference, data] {
        let mut out = Vec::new();
        for base in [base, b"http://host:80/a/b?c"] {
            out.clear();
            if uri::resolve(base, reference, &mut out) {
                assert!(out.iter().all(u8::is_ascii_graphic), "resolved URLs can be sent");
                let mut again = Vec::new();
                assert!(uri::resolve(b"http://x/", &out, &mut again), "resolved URLs are absolute");
            } else {
                assert!(out.is_empty());
            }
        }
    }
    if let Some(parts) = uri::split(base) {
        assert_eq!(
            parts.scheme.len() + 3 + parts.authority.len() + parts.path.len(),
            base.split(|&b| b == b'#').next().unwrap_or_default().len()
        );
        std::hint::black_box((uri::host_port(parts.authority), uri::default_port(parts.scheme)));
    }
}

/// The benchmark's own headers: lines `Name: value`, or values alone.
pub fn marks(data: &[u8]) {
    let mut marks = Marks::default();
    for line in data.split(|&b| b == b'\n') {
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let name = std::str::from_utf8(&line[..colon]).unwrap_or_default();
        marks.see(&Header { name, value: line.get(colon + 1..).unwrap_or_default() });
        std::hint::black_box((WorldMark::parse(line), AbortMark::parse(line)));
    }
    let mut text = Vec::new();
    for world in [marks.local_world, marks.remote_world].into_iter().flatten() {
        text.clear();
        world.write(&mut text);
        assert_eq!(WorldMark::parse(&text), Some(world));
    }
    if let Some(abort) = marks.abort {
        text.clear();
        abort.write(&mut text);
        assert_eq!(AbortMark::parse(&text), Some(abort));
    }
    if let Some(target) = marks.target() {
        std::hint::black_box((target.as_str().len(), target.addr()));
    }
}

/// Chunked bodies.
pub fn chunked(data: &[u8]) {
    whole_and_cut(data, |pieces| {
        let mut reader = BodyReader::new(Framing::Chunked);
        let (mut body, mut consumed) = (Vec::new(), 0);
        for piece in pieces {
            match reader.feed(piece, |bytes| body.extend_from_slice(bytes)) {
                Ok(fed) => consumed += fed.consumed,
                Err(error) => return (body, Err(error)),
            }
            if reader.is_done() {
                break;
            }
        }
        (body, Ok((consumed, reader.is_done())))
    });
}

/// Multipart bodies: the type in the first line, the body behind it.
pub fn multipart(data: &[u8]) {
    let (content_type, body) = two(data);
    let boundary = multipart::boundary(content_type).unwrap_or(b"THIS_STRING_SEPARATES");
    whole_and_cut(body, |pieces| {
        let mut reader = multipart::MultipartReader::new(boundary)?;
        let (mut parts, mut bytes) = (Vec::new(), Vec::new());
        for piece in pieces {
            reader.feed(piece, |piece| match piece {
                MultipartPiece::Part(range, size) => parts.push((range, size, bytes.len())),
                MultipartPiece::Data(data) => bytes.extend_from_slice(data),
            })?;
        }
        Ok::<_, multipart::MultipartError>((parts, bytes, reader.is_done()))
    });
}

/// `Range` and `Content-Range`.
pub fn range(data: &[u8]) {
    let (first, second) = two(data);
    if let Some(set) = RangeSet::parse(first) {
        let mut text = Vec::new();
        write_range(set.specs(), &mut text);
        assert!(RangeSet::parse(&text).is_some_and(|again| again.specs().eq(set.specs())));
        for size in [0, 1, 1000, u64::MAX] {
            assert!(set.resolve(size).all(|range| range.last() < size && range.len() <= size));
        }
    }
    for field in [first, second] {
        if let Some(range) = ContentRange::parse(field) {
            let mut text = Vec::new();
            range.write(&mut text);
            assert_eq!(ContentRange::parse(&text), Some(range));
            assert_eq!(text.len(), range.text_len());
        }
    }
}

/// `Set-Cookie` and `Cookie`.
pub fn cookie(data: &[u8]) {
    const NOW: u64 = 1_800_000_000;
    for line in data.split(|&b| b == b'\n') {
        if let Some(cookie) = SetCookie::parse(line, NOW) {
            let mut text = Vec::new();
            if cookie.write(NOW, &mut text) {
                let again = SetCookie::parse(&text, NOW).map(|again| (again.name, again.value));
                assert_eq!(again, Some((cookie.name, cookie.value)));
            }
        }
        let pairs: Vec<_> = cookie::pairs(line).collect();
        cookie::write_line(pairs, &mut Vec::new());
    }
}

/// Challenges and answers.
pub fn auth(data: &[u8]) {
    for line in data.split(|&b| b == b'\n') {
        for challenge in challenges(line) {
            std::hint::black_box(basic::read(&challenge));
            let Some(digest) = digest::Digest::read(&challenge) else {
                if let Some(answer) = digest::DigestResponse::read(&challenge) {
                    std::hint::black_box(answer.count());
                }
                continue;
            };
            let who = digest::Credentials { user: "us\"er", password: "pass" };
            let request = digest::DigestRequest { method: "GET", uri: "/x" };
            let mut field = Vec::new();
            digest.write_answer(who, request, 3, "word", &mut field);
            let parsed = challenges(&field);
            let answer = parsed.first().and_then(digest::DigestResponse::read);
            let verdict = answer.map(|answer| digest.verify(&answer, "pass", "GET"));
            assert_eq!(verdict, Some(Ok(())), "own answers are good");
        }
    }
}

/// Tokens of NTLM and SPNEGO: bytes of a client for a server, and of a server for a client.
pub fn handshake(data: &[u8]) {
    if let Some(message) = spnego::Message::read(data) {
        assert_eq!(spnego::Message::read(&message.write()).as_ref(), Some(&message), "the same again");
    }
    let users = [("joe".to_owned(), "secret".to_owned())];
    let access = Access::new(vec![Scheme::Negotiate, Scheme::Ntlm], "bench", users);
    let proven = ProvenKeys::default();
    let request = AccessRequest { method: "GET", target: "/", unix_ms: 1, secret: 1, proven: &proven };
    let unique = Uniqueness { nonce: [1; 8], unix_ms: 1 };
    let account = Account { name: "joe", password: "wrong" };
    for framing in [TokenFrame::Ntlm, TokenFrame::Raw, TokenFrame::Spnego] {
        let (mut client, first) = ClientHandshake::begin(framing);
        let mut field = Vec::new();
        polygraph_wire::auth::write_token(framing.scheme(), data, &mut field);
        let token = std::str::from_utf8(&field).ok().and_then(|text| text.split(' ').nth(1));
        std::hint::black_box(client.answer(token, account, unique).is_ok());
        let connection = &mut ConnectionAccess::default();
        let mut ask = |field: &[u8]| access.check(connection, std::iter::once(field), &request);
        // As the first message, and as the last one.
        assert!(
            ask(&field).is_err() && ask(&first).is_err() && ask(&field).is_err(),
            "nobody knows the password"
        );
    }
}

/// Kerberos: replies of a KDC for a client, tokens for a service, and keytabs.
pub fn kerberos(data: &[u8]) {
    let key = |byte| CipherKey::new(EncryptionType::Aes128Sha1, &[byte; 16]).expect("16 bytes are a key");
    let fresh = Fresh { random: [1; 16], now: Moment::of_millis(1_700_000_000_000, 0) };
    let (mut login, first) = Login::begin(Principal::user("joe"), "R", fresh);
    assert!(is_request(&first));
    for _ in 0..2 {
        match login.read(data) {
            // What data asks for would take long to compute.
            Ok(LoginStep::Prove(_)) => {
                assert!(login.prove(&key(1), fresh).is_ok_and(|message| is_request(&message)))
            }
            Ok(LoginStep::Granted(_)) => {
                assert!(login.finish(data, &key(1)).is_err(), "nobody knows the key")
            }
            Err(_) => {}
        }
    }
    std::hint::black_box(error_code(data));
    let keys = [ServiceKey { name: "HTTP/a@R".to_owned(), version: 1, key: key(2) }];
    assert!(
        service::check(data, &keys, &ProvenKeys::default(), [3; 16], fresh.now).is_err(),
        "nobody knows the key"
    );
    if let Ok(keys) = keytab::read(data) {
        assert_eq!(keytab::read(&keytab::write(&keys)).map(|again| again.len()), Ok(keys.len()));
    }
}

/// A certificate and the OCSP response that is stapled to it. Two octets say how long the certificate is.
pub fn staple(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let (certificate, response) = rest.split_at(rest.len().min(u16::from_be_bytes(*length).into()));
    let staple = Staple::read(response, certificate, 1_795_550_400);
    assert!(!staple.to_string().is_empty());
    std::hint::black_box((certificate::subject(certificate), certificate::issuer(certificate)));
}

/// A dialogue with a SOCKS proxy: the bytes of the proxy.
pub fn socks(data: &[u8]) {
    let to = || socks::Destination::Name("origin.test".to_owned(), 80);
    let joe = socks::SocksCredentials { user: "joe".to_owned(), password: "secret".to_owned() };
    whole_and_cut(data, |pieces| {
        let (mut dialogue, hello) = socks::Dialogue::begin(to(), Some(joe.clone()));
        let (mut inbox, mut sent) = (Vec::new(), hello);
        for piece in pieces {
            inbox.extend_from_slice(piece);
            loop {
                match dialogue.advance(&inbox) {
                    Ok(socks::DialogueStep::More) => break,
                    Ok(socks::DialogueStep::Send(used, bytes)) => {
                        inbox.drain(..used);
                        sent.extend_from_slice(&bytes);
                    }
                    // What follows does not belong to the dialogue.
                    Ok(socks::DialogueStep::Open(used)) => return (sent, Some(Ok(used))),
                    Err(e) => return (sent, Some(Err(e))),
                }
            }
        }
        (sent, None)
    });
}

/// Links in bodies.
pub fn markup(data: &[u8]) {
    let tags = LinkTags::parse(&["<embed src>", "<a href>"]).unwrap_or_default();
    whole_and_cut(data, |pieces| {
        let (mut scanner, mut found) = (Scanner::default(), Vec::new());
        let mut sink = |item: MarkupEvent<'_>| {
            found.push(match item {
                MarkupEvent::Link(url) => Ok(url.to_vec()),
                MarkupEvent::Fault(fault) => Err(fault),
            });
        };
        for piece in pieces {
            scanner.feed(&tags, piece, &mut sink);
        }
        scanner.finish(&mut sink);
        found
    });
    whole_and_cut(data, |pieces| {
        let (mut scanner, mut found) = (UriScanner::default(), Vec::new());
        for piece in pieces {
            scanner.feed(piece, |url| found.push(url.to_vec()));
        }
        scanner.finish(|url| found.push(url.to_vec()));
        found
    });
}

/// Single fields and traces of URLs.
pub fn fields(data: &[u8]) {
    for line in data.split(|&b| b == b'\n') {
        let offer = coding::CodingOffer { identity: line.len().is_multiple_of(2), gzip: line.len() % 3 != 0 };
        std::hint::black_box(coding::negotiate([line], offer));
        std::hint::black_box((date::parse_any(line, 1_800_000_000), date::parse_cookie(line)));
        std::hint::black_box(alt_svc::AltSvc::parse(line, "h3"));
        if let Some(digest) = checksum::parse(line) {
            assert_eq!(checksum::parse(&checksum::text(digest)), Some(digest));
        }
    }
    if let Ok(trace) = foreign::UrlTrace::parse(String::from_utf8_lossy(data).into_owned()) {
        for number in [0, 1, u64::MAX] {
            trace.write_url(number, 3, &mut Vec::new());
        }
    }
}
