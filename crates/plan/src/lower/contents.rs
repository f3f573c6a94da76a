//! Content types, and the behaviour of robots towards them.

use std::sync::Arc;

use polygraph_pgl::Workload;
use polygraph_pgl::types::{
    ClientBehavior, Content as PglContent, ContentId, ObjLifeCycle, PopModel as PglPopModel,
};
use polygraph_pgl::types::{Selector as PglSelector, Tree};
use polygraph_pgl::value::{PopDistr, Qualifier};
use polygraph_traffic::content::{BodySource, Embeds, Encodings, Injected, Injection};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::request::BehaviorChange;
use polygraph_traffic::{Content, ContentKind, Distr, Method, PopModel, Popularity, RequestKind, Selector};

use super::{Lowering, distr, headers, maybe, ranges, selector};

/// The content types of a workload, in the order of their numbers in URLs.
pub fn contents(workload: &Workload, found: &mut Lowering<'_>) -> Vec<Content> {
    workload.contents.iter().map(|definition| content(definition, found)).collect()
}

/// The kind of a content type.
pub fn kind(id: ContentId) -> ContentKind {
    ContentKind::of_index(id.0 as usize)
}

/// A selector of kinds.
pub fn kinds<M>(choice: &PglSelector<ContentId, M>) -> Selector<ContentKind> {
    selector(choice, |id| kind(*id))
}

/// Lowers a content type. `choice_space` has no effect; the checks of the language warn about it.
fn content(definition: &PglContent, found: &mut Lowering<'_>) -> Content {
    let mime = definition.mime.as_deref();
    let count = maybe(&definition.embedded_obj_cnt, "embedded_obj_cnt", found);
    let embedded = kinds(&definition.may_contain);
    Content {
        name: definition.kind.clone().unwrap_or_default(),
        size: maybe(&definition.size, "size", found),
        cachable: definition.cachable,
        checksum: definition.checksum,
        unique: definition.unique,
        source: source(definition, found),
        life: definition.obj_life_cycle.as_ref().and_then(|cycle| life(cycle, found)),
        embeds: count.filter(|_| !embedded.is_empty()).map(|count| Embeds { kinds: embedded, count }),
        mime_type: mime.and_then(|mime| mime.type_.clone()),
        prefixes: mime.map(|mime| selector(&mime.prefixes, String::clone)).unwrap_or_default(),
        extensions: mime.map(|mime| selector(&mime.extensions, String::clone)).unwrap_or_default(),
        encodings: Encodings {
            identity: definition.encodings.is_empty() || definition.encodings.prob("identity") > 0.0,
            gzip: definition.encodings.prob("gzip") > 0.0,
        },
        injection: injection(definition, found),
        headers: headers(&definition.mime_headers),
        behavior: definition.client_behavior.as_ref().map(|behavior| change(behavior, found)),
    }
}

fn source(definition: &PglContent, found: &mut Lowering<'_>) -> BodySource {
    let environment = found.environment;
    let generated = match definition.generator.as_deref() {
        Some("random_data") => BodySource::Data,
        _ => BodySource::Text,
    };
    let database = definition
        .content_db
        .as_ref()
        .map(|path| (environment.content_db(path), BodySource::Database as fn(_) -> _));
    let root = definition
        .document_root
        .as_ref()
        .map(|path| (environment.document_root(path), BodySource::Root as fn(_) -> _));
    match database.or(root) {
        Some((files, source)) => found.load(files).map_or(generated, |files| source(Arc::new(files))),
        None => generated,
    }
}

/// Modification and expiration. `birthday` has no effect; the checks of the language warn about it.
fn life(cycle: &ObjLifeCycle, found: &mut Lowering<'_>) -> Option<LifeCycle> {
    let length = maybe(&cycle.length, "length", found)?;
    let mut expires = Vec::new();
    for (rule, prob) in &cycle.expires.items {
        let base = match rule.qualifier {
            Some(Qualifier::Lmt) => ExpiryBase::Lmt,
            Some(Qualifier::Nmt) => ExpiryBase::Nmt,
            Some(Qualifier::Now) | None => ExpiryBase::Now,
        };
        // The gap of `nmt + 0` is not a distribution.
        let gap = distr(rule, "expires", found).unwrap_or(Distr::Const(0.0));
        expires.push((Expiry { base, gap }, *prob));
    }
    let expires = Selector::weighted(expires);
    Some(LifeCycle { length, variance: cycle.variance, with_lmt: cycle.with_lmt, expires })
}

fn injection(definition: &PglContent, found: &mut Lowering<'_>) -> Option<Injection> {
    let prob = definition.infect_prob?;
    let what = match (definition.inject_object.as_deref(), &definition.inject_db) {
        (Some("request_uri"), _) => Injected::RequestUri,
        (_, Some(path)) => {
            let texts = found.environment.text_db(path);
            let texts = Arc::new(found.load(texts)?);
            Injected::Texts { texts, gap: maybe(&definition.inject_gap, "inject_gap", found)? }
        }
        (_, None) => return None,
    };
    Some(Injection { prob, what })
}

/// How requests of robots for a content type differ. The checks of the language treat these fields like those
/// of robots.
fn change(behavior: &ClientBehavior, found: &mut Lowering<'_>) -> BehaviorChange {
    BehaviorChange {
        recurrence: behavior.recurrence,
        popularity: behavior.pop_model.as_deref().map(popularity),
        kinds: request_kinds(&behavior.req_types),
        methods: methods(&behavior.req_methods),
        ranges: ranges::rules(&behavior.ranges, found),
    }
}

/// A popularity model.
pub fn popularity(model: &PglPopModel) -> PopModel {
    PopModel {
        law: match model.pop_distr {
            Some(PopDistr::Zipf { skew }) => Popularity::Zipf { skew },
            Some(PopDistr::Unif) | None => Popularity::Unif,
        },
        hot_frac: model.hot_set_frac,
        hot_prob: model.hot_set_prob,
        bhr_discrimination: model.bhr_discrimination,
    }
}

/// Kinds of requests. The checks of the language have refused other words.
pub fn request_kinds(words: &PglSelector<String, Tree>) -> Selector<RequestKind> {
    selector(words, |word| RequestKind::from_word(word).unwrap_or_default())
}

/// Request methods. The checks of the language have refused other words.
pub fn methods(words: &PglSelector<String, Tree>) -> Selector<Method> {
    selector(words, |word| Method::from_word(word).unwrap_or_default())
}
