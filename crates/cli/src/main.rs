//! `polygraph`: one binary, its subcommands, and the classic names by `argv[0]`.
fn main() {}
