//! x
/// x
pub fn serve(_i: impl std::io::BufRead, _o: impl std::io::Write, _d: Vec<String>) -> std::io::Result<bool> { Ok(true) }
