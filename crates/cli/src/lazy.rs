//! Options of commands that are made when a command is used: there are many commands, and a start needs those of one.

use clap::{ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches};

use crate::help;

/// The options of a command. Its definition is without them, and its help without a layout, until the command line names it
/// or the program is [whole]. What clap derives for `defer` would replace the description of the command, and put options of all
/// commands first.
#[derive(Debug)]
pub struct Lazy<A>(pub A);

impl<A: Args> Args for Lazy<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(define::<A>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Lazy<A> {
    fn from_arg_matches(found: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(found).map(Lazy)
    }

    fn from_arg_matches_mut(found: &mut ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches_mut(found).map(Lazy)
    }

    fn update_from_arg_matches(&mut self, found: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(found)
    }
}

fn define<A: Args>(command: Command) -> Command {
    // Options are documented as a type; what the list of commands says is about the command.
    let about = command.get_about().cloned().unwrap_or_default();
    let of_program: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let command = of_program.into_iter().fold(A::augment_args(command).about(about), |command, id| {
        // Help has options in the order in which they were added; a changed one is added again.
        command.mut_arg(id, |arg| arg)
    });
    help::dress_subcommand(command)
}

/// The definition of a program with the options of all its commands, for those who look into it.
pub fn whole<P: CommandFactory>() -> Command {
    let mut whole = P::command();
    whole.build();
    whole
}

/// A definition with the options of the command itself and of its subcommands.
pub fn whole_of(command: &Command) -> Command {
    let mut whole = command.clone();
    whole.build();
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;

    fn options(program: &Command, name: &str) -> Vec<String> {
        let command = program.find_subcommand(name).unwrap();
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
    }

    #[test]
    fn a_start_makes_the_options_of_the_command_that_it_names() {
        let mut program = Cli::command();
        program.try_get_matches_from_mut(["polygraph", "lx", "--list"]).unwrap();
        assert!(options(&program, "lx").contains(&"objects".to_owned()));
        let all = ["run", "peak", "client"];
        assert!(all.iter().all(|name| !options(&program, name).contains(&"device".to_owned())));
        assert!(options(&whole::<Cli>(), "run").contains(&"device".to_owned()));
    }

    #[test]
    fn a_command_keeps_what_the_list_of_commands_says_of_it() {
        let (program, whole) = (Cli::command(), whole::<Cli>());
        for command in program.get_subcommands() {
            let same = whole.find_subcommand(command.get_name()).unwrap();
            assert_eq!(command.get_about(), same.get_about(), "{}", command.get_name());
        }
    }

    #[test]
    fn options_of_all_commands_come_last() {
        let options = options(&whole::<Cli>(), "run");
        let end = options.len() - 4;
        assert_eq!(options[end..], ["quiet", "color", "help", "version"], "{options:?}");
    }
}
