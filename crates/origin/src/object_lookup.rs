//! Finds the object that a path requests (docs/reference/models.md, "Standard URLs" and "Other paths").

use polygraph_traffic::rng::mix;
use polygraph_traffic::{ContentKind, Oid, UniqId};
use polygraph_wire::url;

use crate::settings::{OriginConfig, ServerProfile};

/// What a path requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestedObject {
    /// An object of the benchmark.
    Object(Oid),
    /// Any object.
    Any,
    /// A health check, which any object answers.
    Health(Oid),
    /// An embedded object of an unknown kind, for which any object is sent.
    UnknownEmbedded,
    /// An object of the benchmark that this server does not have, or under another path.
    Misdirected(Oid),
    /// A path that is not one of the benchmark.
    #[default]
    Foreign,
}

impl RequestedObject {
    /// The object, if the path determines it.
    pub fn oid(&self) -> Option<Oid> {
        match self {
            RequestedObject::Object(oid) | RequestedObject::Health(oid) => Some(*oid),
            _ => None,
        }
    }
}

/// The path of health checks, which load balancers send.
const HEALTH: &[u8] = b"/health";
/// The path of embedded objects in pages that users write.
const EMBED: &[u8] = b"/pg/embed/";

/// Finds what `path` requests from a server with `profile`. `scratch` holds the expected path for the comparison.
pub fn look_up_object(
    path: &[u8],
    config: &OriginConfig,
    profile: &ServerProfile,
    scratch: &mut Vec<u8>,
) -> RequestedObject {
    let served = profile.contents.items();
    if let Some(oid) = url::parse(path) {
        if !served.contains(&oid.kind) {
            return if config.ignore_urls { RequestedObject::Any } else { RequestedObject::Misdirected(oid) };
        }
        scratch.clear();
        config.catalog.write_path(&oid, scratch);
        let good = scratch == path || config.ignore_urls;
        return if good { RequestedObject::Object(oid) } else { RequestedObject::Misdirected(oid) };
    }
    let first = served.first().copied().unwrap_or(ContentKind::FIRST);
    if path.get(..HEALTH.len()).is_some_and(|start| start.eq_ignore_ascii_case(HEALTH)) {
        return RequestedObject::Health(Oid { world: UniqId::default(), kind: first, name: 1 });
    }
    if let Some(rest) = path.strip_prefix(EMBED) {
        return embedded(rest, config);
    }
    if let Some(oid) = config.catalog.file_at(path, served.iter().copied()) {
        return RequestedObject::Object(oid);
    }
    if config.ignore_urls || config.accept_foreign_msgs {
        RequestedObject::Any
    } else {
        RequestedObject::Foreign
    }
}

/// Reads `<kind or MIME type>` and the rest of the path, which distinguishes objects of the kind.
fn embedded(rest: &[u8], config: &OriginConfig) -> RequestedObject {
    let names = |text: &str| {
        let tail = rest.strip_prefix(text.as_bytes())?;
        (!text.is_empty() && !tail.first().is_some_and(u8::is_ascii_alphanumeric)).then_some(tail)
    };
    let found = config.catalog.contents.iter().enumerate().find_map(|(index, content)| {
        let tail = names(&content.name).or_else(|| names(content.mime_type.as_deref()?))?;
        Some((ContentKind::of_index(index), tail))
    });
    let Some((kind, tail)) = found else { return RequestedObject::UnknownEmbedded };
    // The same text is the same object; the odd counter marks an embedded one.
    let hash = tail.iter().fold(0, |hash, &byte| mix(hash ^ u64::from(byte)));
    let world = UniqId { counter: 1, ..UniqId::default() };
    RequestedObject::Object(Oid { world, kind, name: 1 + (hash >> 33) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::config_of;
    use polygraph_traffic::content::{BodySource, Content};
    use polygraph_traffic::files::{File, Files};
    use polygraph_traffic::{Distr, Selector};

    fn mixed() -> OriginConfig {
        let file = |name: &str| File { name: name.into(), bytes: b"x".to_vec() };
        let files = Files(vec![file("index.html"), file("css/main.css")]);
        let page = Content {
            extensions: Selector::only(".html".into()),
            mime_type: Some("text/html".into()),
            ..Content::plain("page", Distr::Const(10.0), 1.0)
        };
        let image = Content { mime_type: Some("image/gif".into()), ..page.clone() };
        let image = Content { name: "image".into(), extensions: Selector::default(), ..image };
        let root = Content { size: None, source: BodySource::Root(Arc::new(files)), ..image.clone() };
        let elsewhere = Content { name: "else".into(), mime_type: None, ..image.clone() };
        let root = Content { name: "root".into(), mime_type: None, ..root };
        let mut config = config_of(vec![page, image, root, elsewhere]);
        config.profiles[0].contents = Selector::even((0..3).map(ContentKind::of_index).collect());
        config
    }

    const WORLD: &str = "/w12345678.00abcdef:0000002a";

    #[test]
    fn paths_by_example() {
        let config = mixed();
        let world = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        let oid = |index, name| Oid { world, kind: ContentKind::of_index(index), name };
        let zero = |index, name| Oid { world: UniqId::default(), kind: ContentKind::of_index(index), name };
        let name = "_00000000000001f4";
        for (path, expected) in [
            (format!("{WORLD}/t03/{name}.html"), RequestedObject::Object(oid(0, 500))),
            (format!("{WORLD}/t03/{name}"), RequestedObject::Misdirected(oid(0, 500))),
            (format!("{WORLD}/t03/{name}.html?x"), RequestedObject::Misdirected(oid(0, 500))),
            (format!("{WORLD}/t04/{name}"), RequestedObject::Object(oid(1, 500))),
            (format!("{WORLD}/t06/{name}"), RequestedObject::Misdirected(oid(3, 500))),
            (format!("{WORLD}/tff/{name}"), RequestedObject::Misdirected(oid(252, 500))),
            ("/index.html".into(), RequestedObject::Object(zero(2, 1))),
            ("/css/main.css?v=2".into(), RequestedObject::Object(zero(2, 2))),
            ("/css".into(), RequestedObject::Foreign),
            ("/".into(), RequestedObject::Foreign),
            ("*".into(), RequestedObject::Foreign),
            ("/HealthCheck".into(), RequestedObject::Health(zero(0, 1))),
            ("/pg/embed/imagination".into(), RequestedObject::UnknownEmbedded),
            ("/pg/embed/".into(), RequestedObject::UnknownEmbedded),
        ] {
            assert_eq!(
                look_up_object(path.as_bytes(), &config, &config.profiles[0], &mut Vec::new()),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn embedded_objects_by_kind_or_type() {
        let config = mixed();
        let get = |path: &str| {
            look_up_object(path.as_bytes(), &config, &config.profiles[0], &mut Vec::new()).oid().unwrap()
        };
        assert_eq!(get("/pg/embed/image").kind, ContentKind::of_index(1));
        assert_eq!(get("/pg/embed/text/html").kind, ContentKind::of_index(0));
        assert_eq!(get("/pg/embed/image?7"), get("/pg/embed/image?7"));
        assert_ne!(get("/pg/embed/image?7"), get("/pg/embed/image?8"));
    }

    #[test]
    fn strangers_get_anything_if_told_so() {
        let foreign = OriginConfig { accept_foreign_msgs: true, ..mixed() };
        let ignorant = OriginConfig { ignore_urls: true, ..mixed() };
        let get = |config: &OriginConfig, path: &str| {
            look_up_object(path.as_bytes(), config, &config.profiles[0], &mut Vec::new())
        };
        assert_eq!(get(&foreign, "/x"), RequestedObject::Any);
        assert_eq!(get(&ignorant, "/x"), RequestedObject::Any);
        assert_eq!(get(&ignorant, &format!("{WORLD}/t06/_00000000000001f4")), RequestedObject::Any);
        let altered = format!("/prefix{WORLD}/t03/_00000000000001f4");
        assert!(matches!(get(&ignorant, &altered), RequestedObject::Object(_)));
        assert!(matches!(get(&foreign, &altered), RequestedObject::Misdirected(_)));
    }
}
