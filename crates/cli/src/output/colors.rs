//! Whether messages have colours.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ColorChoice;

/// The user's choice: 0 auto, 1 always, 2 never.
static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Sets the user's choice.
pub fn choose(choice: ColorChoice) {
    let number = match choice {
        ColorChoice::Auto => 0,
        ColorChoice::Always => 1,
        ColorChoice::Never => 2,
    };
    CHOICE.store(number, Ordering::Relaxed);
}

/// Whether text for this file has colours.
pub fn wanted(file: &impl IsTerminal) -> bool {
    let variable = |name: &str| std::env::var(name).ok();
    match CHOICE.load(Ordering::Relaxed) {
        1 => true,
        2 => false,
        _ => automatic(variable, file.is_terminal()),
    }
}

/// The rules of no-color.org and bixense.com/clicolors.
fn automatic(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is_on = |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "0");
    let is_off = |name: &str| variable(name).is_some_and(|value| value == "0");
    if is_set("NO_COLOR") {
        return false;
    }
    if is_on("CLICOLOR_FORCE") {
        return true;
    }
    is_terminal && !is_off("CLICOLOR") && variable("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::automatic;

    #[test]
    fn variables_and_terminals() {
        let check = |set: &[(&str, &str)], terminal: bool| {
            automatic(
                |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
                terminal,
            )
        };
        for (set, on_terminal, elsewhere) in [
            (&[][..], true, false),
            (&[("NO_COLOR", "1")], false, false),
            (&[("NO_COLOR", "")], true, false),
            (&[("CLICOLOR_FORCE", "1")], true, true),
            (&[("CLICOLOR_FORCE", "0")], true, false),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, false),
            (&[("CLICOLOR", "0")], false, false),
            (&[("TERM", "dumb")], false, false),
        ] {
            assert_eq!((check(set, true), check(set, false)), (on_terminal, elsewhere), "{set:?}");
        }
    }
}
