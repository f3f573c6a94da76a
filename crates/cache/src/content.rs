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

/// Decides whether a content need not be kept: returns the recipe to generate it, given the path of its URL and the
/// content.
pub type ContentGenerator = dyn Fn(&[u8], &[u8]) -> Option<Arc<dyn GeneratedContent>> + Send + Sync;

/// The content of a stored reply. Clones share it.
#[derive(Clone, Debug)]
pub enum Content {
    /// Bytes in memory.
    Kept(Bytes),
    /// Only its recipe is in memory.
    Generated(Arc<dyn GeneratedContent>),
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
