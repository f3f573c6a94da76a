//! Field sections as the crate `h2` takes and gives them.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};

use crate::message::MessageError;
use crate::message::incoming::RequestStart;
use crate::message::outgoing::{FieldSection, Start};

macro_rules! marks {
    ($($text:literal $lower:literal)+) => {
        /// The fields of the benchmark, which need no memory for their names.
        static MARKS: [(&str, HeaderName); [$($text),+].len()] =
            [$(($text, HeaderName::from_static($lower))),+];
    };
}

marks! {
    "X-Xact" "x-xact"
    "X-Target" "x-target"
    "X-Contents" "x-contents"
    "X-Loc-World" "x-loc-world"
    "X-Rem-World" "x-rem-world"
    "X-Abort" "x-abort"
    "X-Phase-Sync-Pos" "x-phase-sync-pos"
    "X-Phase-Sync-Wait" "x-phase-sync-wait"
    "X-Phase-Sync-Gone" "x-phase-sync-gone"
    "Content-MD5" "content-md5"
}

fn name(text: &str) -> Result<HeaderName, MessageError> {
    if let Some((_, known)) = MARKS.iter().find(|(mark, _)| *mark == text) {
        return Ok(known.clone());
    }
    HeaderName::from_bytes(text.as_bytes()).map_err(|_| MessageError::FieldName)
}

/// The part of `whole` that `part` is, without a copy.
fn shared(whole: &Bytes, head: &[u8], part: &[u8]) -> Bytes {
    match (part.as_ptr() as usize).checked_sub(head.as_ptr() as usize) {
        Some(at) if at + part.len() <= whole.len() => whole.slice(at..at + part.len()),
        _ => Bytes::copy_from_slice(part),
    }
}

fn fields(section: &FieldSection<'_>, head: &Bytes) -> Result<HeaderMap, MessageError> {
    let fields = section.fields();
    let most = fields.size_hint().1.unwrap_or_default();
    let mut map = HeaderMap::with_capacity(most);
    for (text, value) in fields {
        let value = HeaderValue::from_maybe_shared(shared(head, section.head, value));
        map.append(name(text)?, value.map_err(|_| MessageError::FieldValue)?);
    }
    Ok(map)
}

/// The request of a field section.
///
/// # Errors
/// If `h2` cannot carry it.
pub fn request(section: &FieldSection<'_>) -> Result<Request<()>, MessageError> {
    let Start::Request { method, scheme, authority, path } = &section.start else {
        return Err(MessageError::Pseudo(":method"));
    };
    let head = Bytes::copy_from_slice(section.head);
    let part = |text: &str| shared(&head, section.head, text.as_bytes());
    let mut uri = http::uri::Parts::default();
    if let Some(authority) = authority {
        let authority = Authority::from_maybe_shared(part(authority));
        uri.authority = Some(authority.map_err(|_| MessageError::Pseudo(":authority"))?);
    }
    if let (Some(path), Some(scheme)) = (path, scheme) {
        let path = PathAndQuery::from_maybe_shared(part(path));
        uri.path_and_query = Some(path.map_err(|_| MessageError::Pseudo(":path"))?);
        uri.scheme = match *scheme {
            _ if uri.authority.is_none() => None,
            "http" => Some(Scheme::HTTP),
            "https" => Some(Scheme::HTTPS),
            other => Some(other.parse().map_err(|_| MessageError::Pseudo(":scheme"))?),
        };
    }
    let mut request = Request::new(());
    *request.method_mut() =
        Method::from_bytes(method.as_bytes()).map_err(|_| MessageError::Pseudo(":method"))?;
    *request.uri_mut() = Uri::from_parts(uri).map_err(|_| MessageError::Pseudo(":path"))?;
    // Without an authority, `h2` takes only requests that come from HTTP/1.
    let names_host = request.uri().authority().is_some();
    *request.version_mut() = if names_host { Version::HTTP_2 } else { Version::HTTP_11 };
    *request.headers_mut() = fields(section, &head)?;
    Ok(request)
}

/// The reply of a field section.
///
/// # Errors
/// If `h2` cannot carry it.
pub fn reply(section: &FieldSection<'_>) -> Result<Response<()>, MessageError> {
    let Start::Reply { status } = section.start else { return Err(MessageError::Pseudo(":status")) };
    let head = Bytes::copy_from_slice(section.head);
    let mut reply = Response::new(());
    *reply.status_mut() = StatusCode::from_u16(status).map_err(|_| MessageError::Pseudo(":status"))?;
    *reply.version_mut() = Version::HTTP_2;
    *reply.headers_mut() = fields(section, &head)?;
    Ok(reply)
}

/// Trailers, from what passes them one by one.
///
/// # Errors
/// If a name or a value cannot be carried.
pub fn trailers(
    pass: impl FnOnce(&mut dyn FnMut(&str, &[u8])) -> Result<(), MessageError>,
) -> Result<HeaderMap, MessageError> {
    let (mut map, mut result) = (HeaderMap::new(), Ok(()));
    pass(&mut |text, value| {
        let value = HeaderValue::from_bytes(value).map_err(|_| MessageError::FieldValue);
        match name(text).and_then(|name| Ok((name, value?))) {
            Ok((name, value)) => drop(map.append(name, value)),
            Err(e) => result = Err(e),
        }
    })?;
    result.map(|()| map)
}

/// The fields of a received section.
pub fn received(map: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    map.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
}

/// The pseudo-header fields of a received request.
pub fn start(head: &http::request::Parts) -> RequestStart<'_> {
    let uri = &head.uri;
    let is_connect = head.method == Method::CONNECT;
    RequestStart {
        method: head.method.as_str().as_bytes(),
        // `h2` has checked that there was a scheme.
        scheme: (!is_connect).then(|| uri.scheme_str().unwrap_or("http").as_bytes()),
        authority: uri.authority().map(|authority| authority.as_str().as_bytes()),
        path: uri.path_and_query().map(|path| path.as_str().as_bytes()).filter(|_| !is_connect),
        host: head.headers.get(http::header::HOST).map(|host| host.as_bytes()),
    }
}
