//! Blocks that wait for their use.

use crate::block::Block;

/// A block in the form of the log, which takes a tenth of the memory of a filled block. Nothing is lost.
#[derive(Clone, Debug)]
pub struct PackedBlock(Vec<u8>);

impl PackedBlock {
    /// Packs a block whose interval has ended.
    ///
    /// # Panics
    /// Never: blocks are written to logs in this form.
    pub fn new(block: &Block) -> PackedBlock {
        PackedBlock(postcard::to_stdvec(block).expect("blocks are written to logs in this form"))
    }

    /// The block.
    ///
    /// # Panics
    /// Never: the bytes are those of a block.
    pub fn unpack(&self) -> Block {
        postcard::from_bytes(&self.0).expect("the bytes are those of a block")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        let mut block = crate::block::tests::full();
        block.close(0);
        // Times of changes of levels belong to intervals that are being filled.
        let logged: Block = postcard::from_bytes(&postcard::to_stdvec(&block).unwrap()).unwrap();
        let mut all = logged.clone();
        all.concatenate(&logged);
        assert_eq!(PackedBlock::new(&all).unpack(), all);
        assert_eq!(PackedBlock::new(&Block::new()).unpack(), Block::new());
    }
}
