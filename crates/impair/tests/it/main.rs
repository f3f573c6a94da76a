//! What reads bytes of the kernel, with bytes that the kernel would not send; and the commands that change the host, as
//! the programs read them.

#![allow(clippy::disallowed_methods, reason = "tests read the corpus and run programs")]

mod commands;
mod fuzzing;
mod mutate;
