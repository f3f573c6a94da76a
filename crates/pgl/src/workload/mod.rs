//! stub
use crate::{Options, check::hir::Program, diagnostic::Diagnostics, eval::Outcome};
/// x
#[derive(Debug)]
pub struct Workload {}
/// x
pub fn build(_p: Program, _o: &Outcome, _opt: &Options, _out: &mut Diagnostics) -> Option<Workload> { None }
