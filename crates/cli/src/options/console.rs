//! Options of all commands: what goes to the console besides results.

use clap::{Args, ColorChoice};

/// Options of all commands.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Console")]
pub struct ConsoleOptions {
    /// Print only results, warnings and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Use colours: auto, always or never. auto: on terminals, unless NO_COLOR, CLICOLOR or CLICOLOR_FORCE say otherwise
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: ColorChoice,
}

/// The choice of colours on a command line that may be wrong, for messages about what is wrong.
pub fn color_choice(words: &[String]) -> ColorChoice {
    let given = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color") {
        Some("") => words.get(at + 1).map(String::as_str),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    given.and_then(|text| text.parse().ok()).unwrap_or_default()
}
