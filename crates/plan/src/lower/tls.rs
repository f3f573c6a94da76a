//! TLS: from a `SslWrap` to the settings of robots and servers (`docs/tls.md`).

use std::sync::Arc;

use polygraph_pgl::Workload;
use polygraph_pgl::types::{Agent, Robot, SslWrap};
use polygraph_stats::HttpVersion;
use polygraph_tls::names;
use polygraph_tls::pem::PemFile;
use polygraph_tls::settings::{CertificateFault, ClientTls, Identity, KeyKind, ServerTls, TlsOffer};
use polygraph_traffic::{Seed, Selector};

use super::{Environment, LowerError, Lowering};

/// Maximum number of sessions of a server with early data and without `session_cache`.
const EARLY_SESSIONS: usize = 10_000;
/// Maximum number of bytes of early data; requests without a body have far fewer.
const EARLY_BYTES: u32 = 16 * 1024;
/// The group whose authority signs certificates of an unknown authority: files of workloads name no such group.
const UNKNOWN: &str = "unknown";
/// What makes agents speak HTTP/3.
const THREE: &str = "\"3\" of `http_versions`";

/// The settings of robots and servers with a `SslWrap` that sets no field. Servers also accept HTTP/2; if none runs here, they have
/// no certificates.
///
/// # Errors
/// If this program was built without TLS, or certificates cannot be made.
pub fn plain_tls(environment: &dyn Environment, seed: Seed) -> Result<(ClientTls, ServerTls), LowerError> {
    environment.tls().map_err(LowerError::Missing)?;
    let mut found = Lowering { obstacles: Vec::new(), notes: Vec::new(), environment };
    let wrap = SslWrap::default();
    let (client, mut server) = (client(&wrap, &mut found), server(&wrap, seed, &mut found));
    server.offer.alpn = ["h2", "http/1.1"].map(str::to_owned).into();
    found.obstacles.pop().map_or(Ok((client, server)), Err)
}

/// The wraps of an agent with their probabilities.
fn wraps<'a>(agent: &'a Agent, workload: &'a Workload) -> impl Iterator<Item = (&'a SslWrap, f64)> {
    agent.ssl_wraps.items.iter().map(|(id, prob)| (&workload.ssl_wraps[id.0 as usize], *prob))
}

/// Checks that TLS can be used, if the agent has it.
fn check(agent: &Agent, found: &mut Lowering<'_>) {
    if !agent.ssl_wraps.items.is_empty() {
        let usable = found.environment.tls();
        found.load(usable);
    }
}

/// Checks that agents which speak HTTP/3 can do so: QUIC needs TLS 1.3 (RFC 9001, section 4.2). `who` does what needs it, unless
/// the user leaves out `cause`.
fn check_http3<'a>(
    offers: impl IntoIterator<Item = &'a TlsOffer>,
    (who, cause): (&str, &str),
    found: &mut Lowering<'_>,
) {
    for field in offers.into_iter().filter_map(TlsOffer::field_without_tls13) {
        let (has, remedy) = match field {
            "protocols" => ("\"TLSv1.2\"", "write \"any\" or \"TLSv1.3\" instead"),
            _ => ("a list without ciphers of TLS 1.3", "add TLS_AES_128_GCM_SHA256 to it"),
        };
        found.wrong(format!(
            "{who}, which needs TLS 1.3, but `{field}` of their `ssl_wraps` has {has}: {remedy}, or leave out {cause}"
        ));
    }
}

/// The settings of a robot; empty without TLS.
pub fn of_robot(robot: &Robot, workload: &Workload, found: &mut Lowering<'_>) -> Selector<Arc<ClientTls>> {
    check(&robot.agent, found);
    let all: Vec<_> =
        wraps(&robot.agent, workload).map(|(wrap, prob)| (Arc::new(client(wrap, found)), prob)).collect();
    let tls = Selector::weighted(all);
    let offers = tls.items().iter().map(|settings| &settings.offer);
    if super::versions(&robot.agent).items().contains(&HttpVersion::Http3) {
        check_http3(offers, ("robots speak HTTP/3", THREE), found);
    } else if robot.follow_alt_svc {
        check_http3(offers, ("robots follow Alt-Svc to HTTP/3", "`follow_alt_svc`"), found);
    }
    tls
}

/// The settings of a server; empty without TLS.
pub fn of_server(
    agent: &Agent,
    workload: &Workload,
    seed: Seed,
    found: &mut Lowering<'_>,
) -> Selector<Arc<ServerTls>> {
    check(agent, found);
    let protocols = protocols(agent);
    let server = |(wrap, prob)| {
        let mut settings = server(wrap, seed, found);
        if settings.offer.alpn.is_empty() {
            settings.offer.alpn.clone_from(&protocols);
        }
        (Arc::new(settings), prob)
    };
    let tls = Selector::weighted(wraps(agent, workload).map(server).collect::<Vec<_>>());
    let mut faults = tls.items().iter().map(|settings| settings.fault);
    if faults.next().is_some_and(|first| faults.any(|other| other != first)) {
        found.wrong(
            "the `ssl_wraps` of a Server must have the same `certificate_fault`, because robots cannot know which of them a server \
             draws: use another Server for each fault",
        );
    }
    if super::versions(agent).items().contains(&HttpVersion::Http3) {
        check_http3(
            tls.items().iter().map(|settings| &settings.offer),
            ("servers speak HTTP/3", THREE),
            found,
        );
    }
    tls
}

/// The application protocols of a server that speaks HTTP/2; others do not use the extension.
fn protocols(agent: &Agent) -> Vec<String> {
    let versions = super::versions(agent);
    let http1 = versions.items().iter().any(|version| !version.is_multiplexed());
    match (versions.items().contains(&HttpVersion::Http2), http1) {
        (true, true) => vec!["h2".to_owned(), "http/1.1".to_owned()],
        (true, false) => vec!["h2".to_owned()],
        (false, _) => Vec::new(),
    }
}

fn client(wrap: &SslWrap, found: &mut Lowering<'_>) -> ClientTls {
    if wrap.generate_certificates == Some(true) {
        found.wrong(
            "robots cannot generate certificates; name files with client certificates in `certificates`",
        );
    }
    let roots =
        wrap.root_certificate.as_ref().and_then(|path| pem(path, found)).unwrap_or_default().certificates;
    ClientTls {
        offer: offer(wrap, found),
        verify: wrap.verify_peer_certificate.unwrap_or(wrap.root_certificate.is_some()),
        roots,
        identities: identities(wrap, found),
        resumption: wrap.session_resumption,
        cache: wrap.session_cache.map(|count| usize::try_from(count).unwrap_or(0)),
        early_data: wrap.early_data,
    }
}

fn server(wrap: &SslWrap, seed: Seed, found: &mut Lowering<'_>) -> ServerTls {
    let root = wrap.root_certificate.as_ref().and_then(|path| pem(path, found));
    let identities = identities(wrap, found);
    let generates = wrap.generate_certificates.unwrap_or(wrap.certificates.is_empty());
    if !generates && wrap.certificates.is_empty() {
        found.wrong("a Server with TLS needs `certificates`, or generates them");
    }
    let fault = fault(wrap, found);
    if !generates && fault.is_some() {
        found.wrong(
            "`certificate_fault` is about certificates that servers generate: leave it out, or leave out `certificates`",
        );
    }
    let client_roots = match wrap.verify_peer_certificate {
        Some(true) => root.as_ref().map(|root| root.certificates.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    let (authority, keys) =
        if generates { generated(wrap, root, found) } else { (None, Selector::default()) };
    let cache = match wrap.session_cache {
        Some(count) => usize::try_from(count).unwrap_or(0),
        None if wrap.early_data => EARLY_SESSIONS,
        None => 0,
    };
    if wrap.early_data && cache == 0 {
        found.wrong("`early_data` of a Server needs a `session_cache`");
    }
    ServerTls {
        offer: offer(wrap, found),
        identities,
        authority,
        fault,
        keys,
        ticket_secret: (wrap.session_cache.is_none() && !wrap.early_data).then(|| ticket_secret(seed)),
        cache,
        early_data: if wrap.early_data { EARLY_BYTES } else { 0 },
        client_roots,
    }
}

/// The secret of session tickets. All processes with the same seed have the same: a robot may return to any of them.
fn ticket_secret(seed: Seed) -> [u8; 32] {
    let mut secret = [0; 32];
    for (number, part) in secret.chunks_mut(8).enumerate() {
        part.copy_from_slice(&seed.derive("tickets", number as u64).to_le_bytes());
    }
    secret
}

/// What is wrong with the certificates of a kind of servers on purpose.
pub fn fault_of(agent: &Agent, workload: &Workload) -> Option<CertificateFault> {
    let (wrap, _) = wraps(agent, workload).next()?;
    CertificateFault::parse(wrap.certificate_fault.as_deref()?).ok()
}

/// What is wrong with the certificates of a server on purpose.
fn fault(wrap: &SslWrap, found: &mut Lowering<'_>) -> Option<CertificateFault> {
    let name = wrap.certificate_fault.as_deref()?;
    CertificateFault::parse(name)
        .map_err(|text| found.wrong(format!("`certificate_fault` of an SslWrap: {text}")))
        .ok()
}

/// The authority and the keys of generated certificates; none if no server runs here.
fn generated(
    wrap: &SslWrap,
    root: Option<PemFile>,
    found: &mut Lowering<'_>,
) -> (Option<Identity>, Selector<Vec<u8>>) {
    let kinds = kinds(wrap, found);
    if !found.environment.runs_servers() {
        return (None, Selector::default());
    }
    let group = wrap.sharing_group.as_deref();
    let given = root.filter(|root| !root.keys.is_empty());
    let authority = match given {
        _ if wrap.certificate_fault.as_deref() == Some(CertificateFault::UnknownAuthority.name()) => {
            Some(found.environment.authority(Some(UNKNOWN)))
        }
        Some(root) => Some(root.identity()),
        None if wrap.root_certificate.is_some() => Some(Err(
            "a Server signs generated certificates with the `root_certificate`, so the file must also contain its private key"
                .to_owned(),
        )),
        None => Some(found.environment.authority(group)),
    };
    let authority = authority.and_then(|made| found.load(made));
    let mut keys = Vec::new();
    for (kind, prob) in kinds {
        let key = found.environment.private_key(group, kind);
        keys.extend(found.load(key).map(|key| (key, prob)));
    }
    (authority, Selector::weighted(keys))
}

/// The kinds of generated keys with their probabilities.
fn kinds(wrap: &SslWrap, found: &mut Lowering<'_>) -> Vec<(KeyKind, f64)> {
    let mut all = Vec::new();
    for (word, prob) in &wrap.key_types.items {
        match KeyKind::parse(word) {
            Ok(KeyKind::Rsa(_)) if word.eq_ignore_ascii_case("RSA") => all.extend(
                wrap.rsa_key_sizes
                    .items
                    .iter()
                    .map(|(size, share)| (KeyKind::Rsa((size.0 * 8) as u32), prob * share)),
            ),
            Ok(kind) => all.push((kind, *prob)),
            Err(text) => found.wrong(format!("`key_types`: {text}")),
        }
    }
    all
}

fn offer(wrap: &SslWrap, found: &mut Lowering<'_>) -> TlsOffer {
    let mut versions = Vec::new();
    for (word, prob) in &wrap.protocols.items {
        match names::versions(word) {
            Ok(set) => versions.push((set, *prob)),
            Err(text) => found.wrong(format!("`protocols`: {text}")),
        }
    }
    let mut ciphers = Vec::new();
    for (words, prob) in &wrap.ciphers.items {
        match names::ciphers(words) {
            Ok(set) => ciphers.push((set, *prob)),
            Err(text) => found.wrong(format!("`ciphers`: {text}")),
        }
    }
    if wrap.alpn.iter().any(|name| name == "h2") {
        found.wrong("`alpn` of an SslWrap: agents with \"2\" in `http_versions` offer and accept \"h2\" by themselves");
    }
    let mut groups = Vec::new();
    for word in &wrap.groups {
        match names::group(word) {
            Ok(group) => groups.push(group),
            Err(text) => found.wrong(format!("`groups`: {text}")),
        }
    }
    TlsOffer {
        versions: Selector::weighted(versions),
        ciphers: Selector::weighted(ciphers),
        groups,
        alpn: wrap.alpn.clone(),
    }
}

fn identities(wrap: &SslWrap, found: &mut Lowering<'_>) -> Vec<Identity> {
    let mut all = Vec::new();
    for path in &wrap.certificates {
        let Some(file) = pem(path, found) else { continue };
        let identity = file.identity().map_err(|text| format!("{path}: {text}"));
        all.extend(found.load(identity));
    }
    all
}

fn pem(path: &str, found: &mut Lowering<'_>) -> Option<PemFile> {
    let text = found.environment.pem(path);
    let file = text.and_then(|text| PemFile::parse(&text).map_err(|problem| format!("{path}: {problem}")));
    found.load(file)
}
