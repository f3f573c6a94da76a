//! Reads the head of a request.

use polygraph_traffic::{Catalog, Content, Method, Oid};
use polygraph_wire::auth::access::AccessDenied;
use polygraph_wire::body::DeclaredFraming;
use polygraph_wire::head::{Persistence, is_named};
use polygraph_wire::marks::Marks;
use polygraph_wire::target::TargetMark;
use polygraph_wire::upload::UploadDigest;
use polygraph_wire::{Framing, RequestHead, date, head, uri};

use crate::names::{self, ServerNames};
use crate::object_lookup::{RequestedObject, look_up_object};
use crate::settings::{OriginConfig, ServerProfile};
use crate::upload::{Upload, alteration};

/// The most bytes of a request head.
pub const MAX_HEAD: usize = 32 * 1024;

/// A time in January 2027 that determines the century of two-digit years.
const CENTURY: u64 = 1_800_000_000;

/// The expectation of a request (RFC 9110, section 10.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expectation {
    /// No expectation.
    #[default]
    None,
    /// `100-continue`: the server must send an interim reply first.
    Continue,
    /// Any other expectation, which the server cannot meet.
    Other,
}

/// Whether a request came to the server that its client meant, as `X-Target` says, and under the name that the client used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// It did, as far as is known.
    #[default]
    Right,
    /// The client meant another server of the test.
    OtherServer,
    /// `Host`, or the authority of the URL, is not what the client sent.
    OtherHost,
    /// The name is not one of the server, and no other server of the test was meant.
    UnknownHost,
}

/// Why a complete request gets no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The URL is not one of the benchmark.
    Foreign,
    /// The server does not have the object, or not under this path.
    Misdirected,
    /// `Host` is missing (RFC 9112, section 3.2).
    NoHost,
    /// Several `Host` fields.
    SeveralHosts,
    /// The method is not one of the benchmark.
    Method,
    /// A body without a length.
    NoLength,
    /// A body with a method that has none.
    ForbiddenLength,
}

/// The requested part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The value of `Range`.
    pub range: Box<[u8]>,
    /// The condition of `If-Range`: the object was last modified at this time, in seconds since 1970. The inner
    /// `None` is a condition that is never met.
    pub only_if: Option<Option<u64>>,
}

/// What a request proves about its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCredentials {
    /// The method as sent.
    pub method: Box<str>,
    /// The request target as sent.
    pub target: Box<str>,
    /// The values of all `Authorization` fields.
    pub fields: Vec<Vec<u8>>,
}

/// A request as an origin server needs it.
///
/// A connection reads all its requests into one value, because the type is too large to be moved cheaply.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The method; undefined for faulty requests.
    pub method: Method,
    /// What the path requests.
    pub requested: RequestedObject,
    /// The requested object; `None` until one is chosen for a request that does not determine it.
    pub oid: Option<Oid>,
    /// Whether caches may store the object.
    pub cachable: bool,
    /// Why the request gets no object.
    pub fault: Option<RequestFault>,
    /// The position of the server name that the client used.
    pub name: usize,
    /// Whether it came to the server that the client meant, under the name that the client used.
    pub arrival: Arrival,
    /// The header fields of the benchmark.
    pub marks: Marks,
    /// Whether the reply must not come from a cache (`no-cache`).
    pub reload: bool,
    /// `If-Modified-Since`, in seconds since 1970.
    pub if_modified_since: Option<u64>,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// Whether the client keeps the connection open.
    pub keep_alive: bool,
    /// Whether the request has a `Content-Length` beside `Transfer-Encoding: chunked`.
    pub length_ignored: bool,
    /// What the client expects before it sends its body.
    pub expectation: Expectation,
    /// The values of all `Accept-Encoding` fields as one list, if the object has several codings.
    pub accept_encoding: Option<Box<[u8]>>,
    /// `Range` and `If-Range`.
    pub parts: Option<Box<Parts>>,
    /// The body, if the request has one.
    pub upload: Option<Box<Upload>>,
    /// What the request proves about its user, if the server has access control.
    pub credentials: Option<Box<RequestCredentials>>,
    /// Why the request gets challenges instead of the object; `None` if it has access.
    pub denial: Option<AccessDenied>,
    /// The value of `WWW-Authenticate` of the reply with the object, if the client wants the server to prove itself.
    pub proof: Option<Vec<u8>>,
    /// The absolute URL, if replies may quote it.
    pub url: Option<Box<str>>,
    /// The start of the request line, if the request has an error.
    pub sample: Option<String>,
    /// Bytes of the head.
    pub head_size: usize,
}

impl Request {
    /// Sets the requested object, if there is one.
    pub fn choose(&mut self, oid: Option<Oid>, catalog: &Catalog) {
        self.oid = oid;
        self.cachable = oid.is_some_and(|oid| catalog.cachable(&oid));
    }

    /// Bytes of head and body.
    pub fn size(&self) -> u64 {
        self.head_size as u64 + self.upload.as_ref().map_or(0, |upload| upload.received())
    }

    /// Whether a device validates its own copy: a robot that validates sets a flag in its mark.
    pub fn is_validation_by_device(&self) -> bool {
        self.if_modified_since.is_some() && self.marks.xact.is_some_and(|xact| xact.flags & 1 == 0)
    }

    /// Why its complete body is not the one that the client sent; `None` if it is, or if nothing tells.
    pub fn altered_body(&mut self) -> Option<String> {
        match (&mut self.upload, self.marks.upload) {
            (Some(upload), _) => upload.alteration(),
            (None, Some(sent)) if self.fault.is_none() => alteration(UploadDigest::default().mark(), sent),
            (None, _) => None,
        }
    }
}

/// Why bytes are not an acceptable request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// They are not an HTTP/1 request head, or the framing is contradictory.
    Malformed,
    /// The head is too large.
    TooLarge,
    /// The server does not accept this version of HTTP.
    Version,
}

/// Reads the requests to one server.
#[derive(Clone, Copy, Debug)]
pub struct RequestReader<'a> {
    /// The configuration that all servers share.
    pub config: &'a OriginConfig,
    /// The profile of the server.
    pub profile: &'a ServerProfile,
    /// The names of the server.
    pub names: &'a ServerNames,
    /// The names of all servers of the test.
    pub all_names: &'a ServerNames,
}

impl RequestReader<'_> {
    /// Reads a request head at the start of `data` into `request`; false if more bytes are needed. `scratch` is a
    /// buffer for paths.
    ///
    /// # Errors
    /// If the bytes are not an acceptable request.
    pub fn read(&self, data: &[u8], request: &mut Request, scratch: &mut Vec<u8>) -> Result<bool, Rejection> {
        match head::parse_request(data, |head| self.facts(head, request, scratch)) {
            Ok(Some(facts)) => facts.map(|()| true),
            Ok(None) if data.len() > MAX_HEAD => Err(Rejection::TooLarge),
            Ok(None) => Ok(false),
            Err(_) => Err(Rejection::Malformed),
        }
    }

    fn facts(
        &self,
        head: &RequestHead<'_, '_>,
        request: &mut Request,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Rejection> {
        let fields = Fields::read(head, &mut request.marks);
        let framing = fields.declared.request_framing().map_err(|_| Rejection::Malformed)?;
        let target = head.target.as_bytes();
        let (authority, path) = match target.first() {
            Some(b'/') => (fields.host, target),
            _ => match uri::split(target) {
                Some(parts) if parts.path.is_empty() => (Some(parts.authority), b"/".as_slice()),
                Some(parts) => (Some(parts.authority), parts.path),
                None => (fields.host, target),
            },
        };
        let requested = look_up_object(path, self.config, self.profile, scratch);
        let method = Method::from_word(head.method);
        let is_health = matches!(requested, RequestedObject::Health(_));
        let fault = match (method, requested) {
            _ if fields.hosts > 1 => Some(RequestFault::SeveralHosts),
            _ if fields.hosts == 0 && head.minor_version > 0 => Some(RequestFault::NoHost),
            _ if authority.is_none_or(<[u8]>::is_empty) && !is_health => Some(RequestFault::NoHost),
            (None, _) => Some(RequestFault::Method),
            (_, RequestedObject::Foreign) => Some(RequestFault::Foreign),
            (_, RequestedObject::Misdirected(_)) => Some(RequestFault::Misdirected),
            (Some(method), _) if method.has_body() && !fields.has_length => Some(RequestFault::NoLength),
            (Some(method), _) if !method.has_body() && matches!(framing, Framing::Length(1..)) => {
                Some(RequestFault::ForbiddenLength)
            }
            _ => None,
        };
        let name = authority.and_then(|authority| self.names.find(authority));
        let content = requested.oid().and_then(|oid| self.config.catalog.content(oid.kind));
        let injects = content.is_some_and(|content| content.injection.is_some());
        request.method = method.unwrap_or_default();
        request.requested = requested;
        request.choose(requested.oid(), &self.config.catalog);
        request.fault = fault;
        request.name = name.unwrap_or(0);
        request.arrival = match is_health {
            true => Arrival::Right,
            false => self.arrival(name, authority.unwrap_or_default(), request.marks.target()),
        };
        request.reload = fields.reload;
        request.if_modified_since = fields.if_modified_since;
        request.minor_version = head.minor_version;
        request.length_ignored = fields.declared.is_length_ignored();
        // Whoever sent the request may take another place for its end (RFC 9112, section 6.1).
        request.keep_alive = fields.persistence.keeps_alive(head.minor_version) && !request.length_ignored;
        request.expectation = if head.minor_version == 0 { Expectation::None } else { fields.expectation };
        request.accept_encoding = if has_choice(content) { accept_encoding(head) } else { None };
        request.parts = fields
            .range
            .filter(|_| method == Some(Method::Get))
            .map(|range| Box::new(Parts { range: range.into(), only_if: fields.if_range }));
        request.upload = (framing != Framing::Length(0) && fault.is_none()).then(|| {
            Box::new(Upload::new(framing, fields.md5, request.marks.upload, !request.method.has_body()))
        });
        request.credentials = (self.profile.access.is_some() && fault.is_none() && !is_health)
            .then(|| Box::new(credentials(head)));
        request.denial = None;
        request.proof = None;
        request.url = (injects || self.profile.redirects.is_some())
            .then(|| absolute(!self.profile.tls.is_empty(), authority, path));
        let odd = fault.is_some()
            || request.arrival != Arrival::Right
            || requested == RequestedObject::UnknownEmbedded;
        request.sample = odd.then(|| format!("{} {}", head.method, head.target).chars().take(200).collect());
        request.head_size = head.len;
        Ok(())
    }

    /// `name` is the position of the server's name that `authority` is, and `target` the server that the client meant.
    fn arrival(&self, name: Option<usize>, authority: &[u8], target: Option<&TargetMark>) -> Arrival {
        let is_known = name.is_some();
        match target.and_then(TargetMark::whole) {
            Some(target) if is_known && target.as_bytes() == authority => Arrival::Right,
            Some(target)
                if self.names.find(target.as_bytes()).is_none()
                    && self.all_names.lists(target.as_bytes()) =>
            {
                Arrival::OtherServer
            }
            // A server that accepts any name knows none.
            Some(target) if (!is_known || self.names.is_any()) && !names::is_same(authority, target) => {
                Arrival::OtherHost
            }
            _ if is_known => Arrival::Right,
            _ => Arrival::UnknownHost,
        }
    }
}

fn has_choice(content: Option<&Content>) -> bool {
    content.is_some_and(|content| content.encodings.gzip)
}

fn credentials(head: &RequestHead<'_, '_>) -> RequestCredentials {
    let fields = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("Authorization"));
    RequestCredentials {
        method: head.method.into(),
        target: head.target.into(),
        fields: fields.map(|field| field.value.to_vec()).collect(),
    }
}

fn accept_encoding(head: &RequestHead<'_, '_>) -> Option<Box<[u8]>> {
    let fields = head.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("Accept-Encoding"));
    fields.map(|field| field.value.to_vec()).reduce(|list, more| [list, more].join(&b',')).map(Vec::into)
}

fn absolute(tls: bool, authority: Option<&[u8]>, path: &[u8]) -> Box<str> {
    let scheme = if tls { "https" } else { "http" };
    let authority = String::from_utf8_lossy(authority.unwrap_or_default());
    format!("{scheme}://{authority}{}", String::from_utf8_lossy(path)).into_boxed_str()
}

/// The header fields that the server reads.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    hosts: u32,
    reload: bool,
    has_length: bool,
    if_modified_since: Option<u64>,
    if_range: Option<Option<u64>>,
    range: Option<&'a [u8]>,
    md5: Option<&'a [u8]>,
    expectation: Expectation,
    declared: DeclaredFraming,
    persistence: Persistence,
}

impl<'a> Fields<'a> {
    fn read(head: &RequestHead<'_, 'a>, marks: &mut Marks) -> Fields<'a> {
        let mut fields = Fields::default();
        marks.clear();
        for header in head.headers {
            if !marks.see(header) {
                fields.see(header.name, header.value);
            }
        }
        fields
    }

    fn see(&mut self, name: &str, value: &'a [u8]) {
        let is = |known: &str| is_named(name, known);
        // The length of a name excludes nearly all others.
        match name.len() {
            4 if is("Host") => {
                self.host = Some(value.trim_ascii());
                self.hosts += 1;
            }
            5 if is("Range") => self.range = Some(value),
            6 if is("Pragma") => self.reload |= head::has_token(value, "no-cache"),
            6 if is("Expect") => {
                let known = value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
                self.expectation = if known { Expectation::Continue } else { Expectation::Other };
            }
            8 if is("If-Range") => self.if_range = Some(date::parse_any(value, CENTURY)),
            10 if is("Connection") => self.persistence.see(value),
            11 if is("Content-MD5") => self.md5 = Some(value),
            13 if is("Cache-Control") => self.reload |= head::has_token(value, "no-cache"),
            14 if is("Content-Length") => {
                self.has_length = true;
                self.declared.see_length(value);
            }
            16 if is("Proxy-Connection") => self.persistence.see_fallback(value),
            17 if is("If-Modified-Since") => self.if_modified_since = date::parse_any(value, CENTURY),
            17 if is("Transfer-Encoding") => {
                self.has_length = true;
                self.declared.see_coding(value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PATH, classic};
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Option<Request>, Rejection> {
        let config = classic(100.0);
        let names = ServerNames::new(&["www:80".to_owned(), "10.0.0.1:8080".to_owned()], false);
        let reader =
            RequestReader { config: &config, profile: &config.profiles[0], names: &names, all_names: &names };
        // Nothing of an earlier request may remain.
        let mut request = Request::default();
        let earlier = "POST http://x/?y HTTP/1.1\r\nHost: x\r\nRange: bytes=1-\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(reader.read(earlier.as_bytes(), &mut request, &mut Vec::new()), Ok(true));
        let read = reader.read(text.as_bytes(), &mut request, &mut Vec::new());
        read.map(|complete| complete.then_some(request))
    }

    #[track_caller]
    fn get(text: &str) -> Request {
        read(text).unwrap().unwrap()
    }

    #[test]
    fn requests_by_example() {
        let text = format!(
            "GET {PATH} HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nConnection: close\r\n\
             X-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 0\r\n\r\n"
        );
        let request = get(&text);
        assert_eq!((request.method, request.keep_alive, request.name), (Method::Get, false, 1));
        assert_eq!(request.oid.map(|oid| oid.name), Some(500));
        assert_eq!(request.marks.xact.map(|xact| xact.id.counter), Some(4));
        assert_eq!((request.fault, request.arrival, request.head_size), (None, Arrival::Right, text.len()));
        assert!(request.sample.is_none() && request.upload.is_none() && request.url.is_none());
        let request = get(&format!("GET http://other{PATH} HTTP/1.0\r\n\r\n"));
        assert_eq!((request.fault, request.arrival, request.keep_alive), (None, Arrival::UnknownHost, false));
        assert_eq!(read("nonsense\r\n\r\n").err(), Some(Rejection::Malformed));
        assert!(matches!(read("GET / HT"), Ok(None)));
        assert_eq!(read(&"a".repeat(MAX_HEAD + 1)).err(), Some(Rejection::TooLarge));
    }

    #[test]
    fn faults() {
        let h = "Host: www\r\n";
        for (line, fields, expected) in [
            ("GET /x HTTP/1.1", h.to_owned(), Some(RequestFault::Foreign)),
            (&format!("GET {PATH} HTTP/1.1"), String::new(), Some(RequestFault::NoHost)),
            (&format!("GET http://www{PATH} HTTP/1.1"), String::new(), Some(RequestFault::NoHost)),
            (&format!("GET http://www{PATH} HTTP/1.0"), String::new(), None),
            (&format!("GET {PATH} HTTP/1.0"), String::new(), Some(RequestFault::NoHost)),
            ("GET /health HTTP/1.0", String::new(), None),
            (&format!("GET {PATH} HTTP/1.1"), format!("{h}{h}"), Some(RequestFault::SeveralHosts)),
            (&format!("GET {PATH}.gif HTTP/1.1"), h.to_owned(), Some(RequestFault::Misdirected)),
            (&format!("DELETE {PATH} HTTP/1.1"), h.to_owned(), Some(RequestFault::Method)),
            ("CONNECT www:443 HTTP/1.1", h.to_owned(), Some(RequestFault::Method)),
            (&format!("POST {PATH} HTTP/1.1"), h.to_owned(), Some(RequestFault::NoLength)),
            (&format!("POST {PATH} HTTP/1.1"), format!("{h}Content-Length: 0\r\n"), None),
            (&format!("PUT {PATH} HTTP/1.1"), format!("{h}Transfer-Encoding: chunked\r\n"), None),
            (
                &format!("GET {PATH} HTTP/1.1"),
                format!("{h}Content-Length: 1\r\n"),
                Some(RequestFault::ForbiddenLength),
            ),
            (&format!("GET {PATH} HTTP/1.1"), format!("{h}Content-Length: 0\r\n"), None),
        ] {
            let request = get(&format!("{line}\r\n{fields}\r\n"));
            assert_eq!(request.fault, expected, "{line} {fields}");
            assert_eq!(request.sample.is_some(), request.fault.is_some(), "{line}");
        }
    }

    #[test]
    fn options() {
        let request = |fields: &str| get(&format!("GET {PATH} HTTP/1.1\r\nHost: www\r\n{fields}\r\n"));
        assert!(
            request("Cache-Control: max-age=0, no-cache\r\n").reload
                && request("Pragma: no-cache\r\n").reload
        );
        assert!(!request("Cache-Control: max-age=0\r\n").reload);
        let since = request("if-modified-since: Wed, 18 Feb 1998 17:53:58 GMT\r\n").if_modified_since;
        assert_eq!(since, Some(887_824_438));
        let parts = request("Range: bytes=1-2\r\nIf-Range: \"etag\"\r\n").parts;
        assert_eq!(parts.map(|parts| parts.only_if), Some(Some(None)));
        for (value, expected) in [("100-Continue", Expectation::Continue), ("more", Expectation::Other)] {
            assert_eq!(request(&format!("Expect: {value}\r\n")).expectation, expected);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            target in "(http://)?[a-z:/*.?\\[\\]@]{0,20}(/pg/embed/|/health|/w12345678.00abcdef:0000002a/t0)?[0-9a-f/_t]{0,30}",
            host in "[a-zA-Z0-9:.\\[\\]]{0,12}",
            field in "(Range|Expect|If-Range|Content-MD5|Content-Length|Accept-Encoding): [a-z0-9=,;-]{0,20}",
        ) {
            let config = classic(100.0);
            let names = ServerNames::new(&["www:80".to_owned(), "*.dyn:80".to_owned()], false);
            let reader = RequestReader { config: &config, profile: &config.profiles[0], names: &names, all_names: &names };
            let mut request = Request::default();
            let _ = reader.read(&bytes, &mut request, &mut Vec::new());
            for method in ["GET", "POST", "CONNECT"] {
                let text = format!("{method} /{target} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n\r\n");
                let _ = reader.read(text.as_bytes(), &mut request, &mut Vec::new());
                let _ = reader.read(text.replace(" /", " ").as_bytes(), &mut request, &mut Vec::new());
            }
        }
    }
}
