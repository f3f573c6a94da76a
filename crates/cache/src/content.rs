//! The content of a stored reply: bytes in memory, or a recipe for them.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use polygraph_traffic::Body;

/// A content that is generated each time it is sent instead of being kept.
pub trait GeneratedContent: Debug + Send + Sync {
    /// Its length in bytes.
    fn size(&self) -> u64;

    /// The content.
    fn body(&self) -> Body;
}

/// The recipe of the content that is expected at the path of a URL. A content that turns out to be equal is not kept.
pub type ContentGenerator = dyn Fn(&[u8]) -> Option<Arc<dyn GeneratedContent>> + Send + Sync;

/// The content of a stored reply. Clones share it.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes in memory.
    Kept(Bytes),
    /// Only its recipe is in memory.
    Generated(Arc<dyn GeneratedContent>),
}

/// A content of which the beginning has arrived.
#[derive(Debug)]
pub struct ArrivingContent {
    len: u64,
    form: ArrivingForm,
}

#[derive(Debug)]
enum ArrivingForm {
    /// What has arrived is equal to what the recipe generates. `rest` is expected next.
    Expected { recipe: Arc<dyn GeneratedContent>, rest: Body },
    /// The bytes that have arrived.
    Kept(Vec<u8>),
}

impl ArrivingContent {
    /// Nothing has arrived. If the content is not as `recipe` says, `room` is the number of bytes for which memory is allocated.
    pub fn new(recipe: Option<Arc<dyn GeneratedContent>>, room: usize) -> ArrivingContent {
        let form = match recipe {
            Some(recipe) => ArrivingForm::Expected { rest: recipe.body(), recipe },
            None => ArrivingForm::Kept(Vec::with_capacity(room)),
        };
        ArrivingContent { len: 0, form }
    }

    /// Number of bytes that have arrived.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Takes the next bytes.
    pub fn append(&mut self, piece: &[u8]) {
        let before = self.len;
        self.len += piece.len() as u64;
        if let ArrivingForm::Expected { recipe, rest } = &mut self.form {
            if rest.compare(piece) == piece.len() {
                return;
            }
            self.form = ArrivingForm::Kept(beginning(&**recipe, before));
        }
        if let ArrivingForm::Kept(bytes) = &mut self.form {
            bytes.extend_from_slice(piece);
        }
    }

    /// The complete content.
    pub fn complete(self) -> Content {
        let bytes = match self.form {
            ArrivingForm::Expected { recipe, rest } if rest.is_empty() => return Content::Generated(recipe),
            ArrivingForm::Expected { recipe, .. } => beginning(&*recipe, self.len),
            ArrivingForm::Kept(bytes) => bytes,
        };
        // Without spare capacity, so that the figures of the store are exact.
        Content::Kept(Bytes::from(bytes.into_boxed_slice()))
    }
}

/// The first `len` bytes of a generated content.
fn beginning(recipe: &dyn GeneratedContent, len: u64) -> Vec<u8> {
    let mut body = recipe.body();
    body.truncate(len);
    body.to_vec()
}

impl Content {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Kept(bytes) => bytes.len() as u64,
            Content::Generated(recipe) => recipe.size(),
        }
    }

    /// True for a length of 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content as bytes in memory.
    pub fn bytes(&self) -> Bytes {
        match self {
            Content::Kept(bytes) => bytes.clone(),
            Content::Generated(recipe) => recipe.body().to_vec().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Recipe(&'static [u8]);

    impl GeneratedContent for Recipe {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn body(&self) -> Body {
            Body::from_bytes(self.0.to_vec())
        }
    }

    #[test]
    fn only_what_is_as_expected_to_its_end_is_generated() {
        let arrive = |recipe: Option<&'static [u8]>, pieces: &[&[u8]]| {
            let recipe = recipe.map(|bytes| Arc::new(Recipe(bytes)) as _);
            let mut content = ArrivingContent::new(recipe, 10);
            pieces.iter().for_each(|piece| content.append(piece));
            assert_eq!(content.len(), pieces.concat().len() as u64);
            let content = content.complete();
            assert_eq!(content.bytes(), pieces.concat());
            matches!(content, Content::Generated(_))
        };
        assert!(arrive(Some(b"expected"), &[b"exp", b"", b"ected"]));
        assert!(arrive(Some(b""), &[]));
        assert!(!arrive(None, &[b"exp", b"ected"]));
        assert!(!arrive(Some(b"expected"), &[b"exp", b"ired"]), "other bytes");
        assert!(!arrive(Some(b"expected"), &[b"exp"]), "too short");
        assert!(!arrive(Some(b"expected"), &[b"expected", b"!"]), "too long");
        assert!(!arrive(Some(b"expected"), &[]), "empty");
    }
}
