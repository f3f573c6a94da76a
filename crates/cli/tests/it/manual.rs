//! The manual: the blocks that its pages mark with `run` are run, in the order of the page and in one empty directory, as
//! a reader would. `polygraph_tidy::commands` describes the marks.
//!
//! Whether the machine was too busy for a VALID run does not matter here: the commands are tested, not the machine.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polygraph_tidy::commands::{CodeBlock, all_blocks};
use polygraph_tidy::tree;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::sandbox::{Sandbox, free_port};

/// What readers have in the clone of the repository, where the manual says so.
const OF_THE_TREE: [&str; 6] = ["workloads", "bakeoffs", "data", "devices", "examples", "labs"];

/// Ports in the pages. Tests get free ones, because other programs may have these; longer numbers come first.
const PORTS: [&str; 4] = ["13128", "19080", "8080", "9080"];

/// What a run says of a machine that was busy with other work.
const BUSY: [&str; 3] = ["INVALID (client)", "INVALID (server)", "INVALID (host)"];

/// Where programs are, with the directory of the program and its classic names before.
fn search_path(programs: &Path) -> String {
    let known = std::env::var("PATH").unwrap_or_default();
    format!("{}:{known}:/usr/sbin:/usr/local/sbin", programs.display())
}

/// Whether a program is on this machine.
fn exists(program: &str, path: &str) -> bool {
    path.split(':').any(|directory| Path::new(directory).join(program).is_file())
}

/// The shell code with a shorter goal.
fn shortened(code: &str, goal: Option<&str>) -> String {
    let Some(goal) = goal else { return code.to_owned() };
    let mut parts = code.split("--goal ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(char::is_whitespace).unwrap_or(part.len());
        out.push_str(&format!("--goal {goal}{}", &part[end..]));
    }
    out
}

/// How long the blocks of a page may take together.
const PAGE_PATIENCE: Duration = Duration::from_secs(300);

/// Runs the blocks of a page in one shell, as a reader does in one terminal. Returns what went wrong.
fn read_page(blocks: &[CodeBlock]) -> Vec<String> {
    let sandbox = Sandbox::new();
    let [programs, directory, printed] = ["bin", "work", "printed"].map(|name| sandbox.path().join(name));
    for directory in [&programs, &directory, &printed] {
        std::fs::create_dir(directory).unwrap();
    }
    for name in sandbox.polygraph("installed-names").out.lines().chain(["polygraph"]) {
        symlink(env!("CARGO_BIN_EXE_polygraph"), programs.join(name)).unwrap();
    }
    for name in OF_THE_TREE {
        symlink(tree::root().join(name), directory.join(name)).unwrap();
    }
    let path = search_path(&programs);
    let has = |block: &&CodeBlock| block.mark("needs").is_none_or(|program| exists(program, &path));
    let blocks: Vec<&CodeBlock> = blocks.iter().filter(has).collect();
    let ports = PORTS.map(|port| (port, free_port().to_string()));
    let script: String = blocks.iter().map(|block| step(block, &ports, &printed)).collect();

    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&directory)
        .env("PATH", &path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = Pid::from_child(&shell);
    let deadline = Instant::now() + PAGE_PATIENCE;
    while shell.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Blocks may leave processes in the background. A group whose processes have all ended is no error.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = shell.wait();
    blocks.iter().filter_map(|block| wrong(block, &printed)).collect()
}

/// The part of the script for a block: it keeps what the block prints, and the exit code of its last command.
fn step(block: &CodeBlock, ports: &[(&str, String)], printed: &Path) -> String {
    let file = printed.join(block.line.to_string());
    let file = file.display();
    let mut code = shortened(&block.text, block.mark("goal"));
    for (port, free) in ports {
        code = code.replace(port, free);
    }
    format!("exec >{file}.txt 2>&1\n{code}\necho $? >{file}.status\n")
}

/// What went wrong in a block that has been run.
fn wrong(block: &CodeBlock, printed: &Path) -> Option<String> {
    let read = |end: &str| {
        std::fs::read_to_string(printed.join(format!("{}.{end}", block.line))).unwrap_or_default()
    };
    let (printed, status) = (read("txt"), read("status"));
    let wanted = block.mark("exit").unwrap_or("0");
    let is_busy =
        ["0", "1", "15"].contains(&status.trim()) && BUSY.iter().any(|words| printed.contains(words));
    let is_wanted = wanted.split(',').any(|code| code == status.trim());
    (!is_wanted && !is_busy)
        .then(|| format!("{}: ended with `{}` instead of {wanted}:\n{printed}", block.place(), status.trim()))
}

#[test]
fn the_blocks_of_the_manual_run() {
    let mut pages: BTreeMap<PathBuf, Vec<CodeBlock>> = BTreeMap::new();
    for block in all_blocks().into_iter().filter(|block| block.is_shell() && block.has_mark("run")) {
        pages.entry(block.page.clone()).or_default().push(block);
    }
    assert!(pages.len() > 5, "{:?}", pages.keys());
    // Pages wait more than they compute.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let readers: Vec<_> =
            pages.into_values().map(|blocks| scope.spawn(move || read_page(&blocks))).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_block_that_fails_is_found() {
    let block = |line: usize, text: &str, marks: &str| CodeBlock {
        page: PathBuf::from("x.md"),
        line,
        marks: marks.split(' ').map(str::to_owned).collect(),
        text: format!("{text}\n"),
    };
    let good = [
        block(1, "polygraph lx --list >list.txt && test -s list.txt && test -d workloads", "sh run"),
        block(2, "sleep 0.1 && touch later &", "sh run"),
        block(3, "wait\ntest -f later", "sh run"),
        block(4, "polyclt --no_such_option", "sh run exit=2"),
        block(5, "no-such-program", "sh run needs=no-such-program"),
        block(6, "echo 127.0.0.1:9080 19080 >ports && ! grep -q 90[8]0 ports", "sh run"),
    ];
    assert_eq!(read_page(&good), [""; 0]);
    let bad = ["polygraph lx nothing.log", "polygraph rum", "no-such-program", "exit 0", "true"];
    let bad: Vec<CodeBlock> =
        bad.iter().enumerate().map(|(line, text)| block(line, text, "sh run")).collect();
    let found = read_page(&bad);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found[0].contains("nothing.log") && found[3].contains("ended with ``"), "{found:#?}");
    assert_eq!(shortened("run --goal 1min \\\n --goal 5s\n", Some("2s")), "run --goal 2s \\\n --goal 2s\n");
    assert!(exists("sh", "/nowhere:/bin:/usr/bin") && !exists("sh", "/nowhere"));
}
