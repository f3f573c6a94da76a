//! Text that is inserted into bodies, for tests of filters and virus scanners (`docs/reference/models.md`,
//! "Text injection").
//!
//! The size of a body does not change. Insertions replace filler; content from files moves back and loses its
//! end. Insertions are placed between tags, never inside one.

use std::sync::Arc;

use crate::distr::Distr;
use crate::files::{Files, Reading};
use crate::rng::{Draw, Random};

/// The largest number of insertions in one body; it bounds the memory of large bodies with small gaps.
pub const MAX_INSERTIONS: u32 = 20_000;

/// The insertions of a body, from front to back.
#[derive(Debug)]
pub(crate) struct Insertions<'a> {
    texts: &'a Arc<Files>,
    gap: &'a Distr,
    rng: Draw,
    /// The index of the next text.
    text: usize,
    /// The least position of the next text: a gap after the end of the one before.
    due: u64,
    drawn: u32,
}

impl<'a> Insertions<'a> {
    /// Insertions of `texts`, all with the same probability; `None` if there is no text. Gaps are at least one
    /// byte.
    pub fn new(texts: &'a Arc<Files>, gap: &'a Distr, rng: Draw) -> Option<Insertions<'a>> {
        let mut insertions = Insertions { texts, gap, rng, text: 0, due: 0, drawn: 0 };
        insertions.draw(0);
        texts.0.iter().any(|text| !text.bytes.is_empty()).then_some(insertions)
    }

    fn draw(&mut self, after: u64) {
        self.text = self.rng.below(self.texts.0.len() as u64) as usize;
        let gap = self.gap.sample_at(u64::from(self.drawn), &mut self.rng).max(1.0) as u64;
        self.due = after.saturating_add(gap);
        self.drawn += 1;
    }

    /// Position, text and length of the next insertion in the range from `start` to `until`, if there is one.
    /// `between` gives the first position at or after another that is between tags.
    ///
    /// A text that does not fit into a range waits for the next one. If it does not fit even at its start,
    /// another text takes its turn, so that a long text does not block all others.
    pub fn next(
        &mut self,
        start: u64,
        until: u64,
        between: impl Fn(u64) -> u64,
    ) -> Option<(u64, Reading, u64)> {
        while self.due < until && self.drawn <= MAX_INSERTIONS {
            let at = between(self.due.max(start));
            let text = Reading::repeated(self.texts, self.text);
            let len = text.as_ref().map_or(0, |text| text.chunk().len() as u64);
            match text {
                Some(text) if at + len <= until => {
                    self.draw(at + len);
                    return Some((at, text, len));
                }
                Some(_) if self.due > start => return None,
                _ => self.draw(at),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{BodySource, Embeds, Injected, Injection};
    use crate::files::File;
    use crate::{Catalog, Content, ContentKind, Oid, Seed, Selector, UniqId};

    fn files(contents: &[&[u8]]) -> Arc<Files> {
        let file = |bytes: &&[u8]| File { name: String::new(), bytes: bytes.to_vec() };
        Arc::new(Files(contents.iter().map(file).collect()))
    }

    fn catalog(prob: f64, what: Injected, change: impl FnOnce(&mut Content)) -> Catalog {
        let mut page = Content::plain("page", Distr::Exp { mean: 11_264.0 }, 0.8);
        page.injection = Some(Injection { prob, what });
        change(&mut page);
        let image = Content::plain("image", Distr::Const(4_000.0), 0.8);
        Catalog { seed: Seed(3), contents: vec![page, image] }
    }

    fn oid(name: u64) -> Oid {
        Oid { world: UniqId::default(), kind: ContentKind::FIRST, name }
    }

    fn text(catalog: &Catalog, name: u64) -> String {
        let body = catalog.body(&oid(name), b"http://example.com/x").to_vec();
        assert_eq!(body.len() as u64, catalog.size(&oid(name)));
        String::from_utf8(body).unwrap()
    }

    /// Distances between texts; the first one is that from the start.
    fn gaps(body: &str, text: &str) -> Vec<f64> {
        let mut end = 0;
        let gap = |(at, _): (usize, &str)| {
            let gap = at - end;
            end = at + text.len();
            gap as f64
        };
        body.match_indices(text).map(gap).collect()
    }

    fn embeds(content: &mut Content) {
        content.embeds =
            Some(Embeds { kinds: Selector::only(ContentKind::of_index(1)), count: Distr::Zipf { n: 13 } });
    }

    #[test]
    fn gaps_and_share_are_as_asked() {
        // Exponential gaps with a mean of 100 bytes, cut to whole bytes and at least 1 (mean about 99.5): 1,000
        // bodies of 11 KB have about 100,000. The end of each body hides its last gap, which favours short gaps
        // by at most one in a hundred. The tolerance is 3 %.
        let what = || Injected::Texts { texts: files(&[b"EVIL"]), gap: Distr::Exp { mean: 100.0 } };
        let all = catalog(1.0, what(), |_| ());
        let found: Vec<f64> = (1..1_000).flat_map(|name| gaps(&text(&all, name), "EVIL")).collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        assert!(found.len() > 80_000 && (mean / 99.5 - 1.0).abs() < 0.03, "{mean} of {}", found.len());
        // A share of 30 % of 5,000 objects: five standard errors.
        let some = catalog(0.3, what(), |content| content.size = Some(Distr::Const(3_000.0)));
        let injected = (1..=5_000).filter(|&name| text(&some, name).contains("EVIL")).count();
        assert!((injected as f64 / 5_000.0 - 0.3).abs() < 5.0 * (0.21f64 / 5_000.0).sqrt(), "{injected}");
    }

    #[test]
    fn containers_keep_their_tags() {
        let what = Injected::Texts {
            texts: files(&[b"EVIL", &[b'L'; 2_000], b""]),
            gap: Distr::Exp { mean: 100.0 },
        };
        let injected = catalog(1.0, what.clone(), embeds);
        let clean = catalog(0.0, what, embeds);
        let tags = |body: &str| -> Vec<(usize, String)> {
            body.match_indices("<embed src=\"")
                .map(|(at, _)| (at, body[at..].split_inclusive('>').next().unwrap().to_owned()))
                .collect()
        };
        let mut texts = 0;
        for name in 1..500 {
            let body = text(&injected, name);
            assert_eq!(tags(&body), tags(&text(&clean, name)), "{name}");
            texts += body.matches("EVIL").count();
        }
        assert!(texts > 1_000, "{texts}");
    }

    #[test]
    fn real_content_moves_back_and_its_tags_stay_whole() {
        const TAGS: [&str; 5] = ["<p class=\"some class\">", "<a href=\"a>\">", "</a>", "</p>", "<br/>"];
        let page = TAGS.join("some text").repeat(20);
        for source in [
            BodySource::Root(files(&[page.as_bytes()])),
            BodySource::Database(files(&[page.as_bytes(), b"plain", b""])),
        ] {
            let what =
                Injected::Texts { texts: files(&[b"[EVIL]"]), gap: Distr::Unif { min: 1.0, max: 90.0 } };
            let change = |content: &mut Content| content.source = source;
            let injected = catalog(1.0, what, change);
            let mut clean = injected.clone();
            clean.contents[0].injection = None;
            let mut texts = 0;
            for name in 1..200 {
                let body = text(&injected, name);
                assert!(text(&clean, name).starts_with(&body.replace("[EVIL]", "")));
                texts += body.matches("[EVIL]").count();
                // Once the whole tags are removed none is left, unless the end of the body cuts it.
                let rest = TAGS.iter().fold(body, |rest, tag| rest.replace(tag, ""));
                assert!(rest.find('<').is_none_or(|at| !rest[at..].contains("[EVIL]")), "{rest}");
            }
            assert!(texts > 10_000, "{texts}");
        }
    }

    #[test]
    fn the_url_is_the_end_of_the_body() {
        let page = b"<p class=\"a class with a name that is a long one\">text</p>".repeat(50);
        let plain = catalog(1.0, Injected::RequestUri, |_| ());
        let pages = catalog(1.0, Injected::RequestUri, embeds);
        let real =
            catalog(1.0, Injected::RequestUri, |content| content.source = BodySource::Root(files(&[&page])));
        for catalog in [plain, pages, real] {
            for name in 1..300 {
                let body = text(&catalog, name);
                let (head, url) = body.split_at(body.len().saturating_sub(20));
                assert!("http://example.com/x".ends_with(url), "{url}");
                assert!(head.rfind('<').is_none_or(|at| head[at..].contains('>')), "{head}");
            }
            assert_eq!(catalog.body(&oid(7), b"").len(), catalog.size(&oid(7)));
        }
    }

    #[test]
    fn large_bodies_with_small_gaps_stay_small() {
        let what = Injected::Texts { texts: files(&[b"x", b""]), gap: Distr::Const(f64::NAN) };
        let catalog = catalog(1.0, what, |content| content.size = Some(Distr::Const(2e9)));
        let mut slices = [std::io::IoSlice::new(&[]); 64];
        assert_eq!(catalog.body(&oid(1), b"").slices(&mut slices), 64);
    }
}
