//! What users of the original Web Polygraph bring along: classic program names, misprinted command lines, and options that
//! this program does not have.

pub mod command_line;
pub mod programs;
pub mod unsupported_options;
