//! `polygraph certs`: an authority and certificates for all names and addresses of a workload.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_pgl::types::AddrMap;
use polygraph_pgl::{DiskLoader, Workload, compile};
use polygraph_text as text;
use polygraph_tls::pem::{self, PemFile};
use polygraph_tls::settings::{Identity, KeyKind};
use polygraph_tls::{Validity, make_authority, make_key, sign};

use super::check::show_findings;
use crate::exit::{self, Done};
use crate::options::SourceOptions;
use polygraph_runner::Failure;

/// Names of one certificate for all, at most: each handshake transfers them.
const MAX_IN_ONE: usize = 100;

/// Options of `certs`.
#[derive(Debug, Parser)]
#[command(
    rename_all = "snake_case",
    after_help = "\
Examples:
  polygraph certs my.pg --out certs                       authority and certificates for all names
  polygraph certs --name www.example.com --name 10.0.0.1  for names on the command line
  polygraph certs --name proxy.test --ca certs/ca.pem     signed by an existing authority
  polygraph certs --name old.test --expired               for a test of what a device does with it

Files in the directory: `ca.crt` is the certificate of the authority, for all that must trust it (robots: `root_certificate`; \
devices: `--device_opt`). `ca.pem` also has its private key, for `root_certificate` of servers that generate certificates, and for \
devices that do. `NAME.pem` is a certificate with its key. `all.pem` is one certificate for all names, if there are at most 100."
)]
pub struct Args {
    /// Workload file with the names: of its address maps and servers; `-` is standard input
    file: Option<String>,
    /// Further names or addresses
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Directory for the files
    #[arg(long, value_name = "DIR", default_value = "certs")]
    out: PathBuf,
    /// Kind of the keys: RSA-2048, RSA-3072, RSA-4096, ECDSA-P256 or Ed25519
    #[arg(long, value_name = "KIND", default_value = "RSA-2048", value_parser = KeyKind::parse)]
    key_type: KeyKind,
    /// File with certificate and private key of an authority, instead of a new one
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Make certificates that expired long ago
    #[arg(long)]
    expired: bool,
    #[command(flatten)]
    source: SourceOptions,
    /// Random seed for everything that all processes of a test must agree on
    #[arg(long, value_name = "N", default_value_t = 1)]
    global_rng_seed: u64,
}

/// Makes the files.
///
/// # Errors
/// If there are no names, or a file cannot be read or written.
pub fn run(args: &Args) -> Done {
    let mut names: Vec<String> = args.names.clone();
    if let Some(file) = &args.file {
        let compilation = compile(file, &DiskLoader, &args.source.compiler(args.global_rng_seed));
        let Some(workload) = &compilation.workload else {
            show_findings(&compilation).map_err(Failure::setup)?;
            return Ok(ExitCode::FAILURE);
        };
        names.extend(names_of(workload));
    }
    if names.is_empty() {
        return Err(Failure::usage("for which names? give a workload file or --name"));
    }
    let wrong = |text: String| Failure::setup(anyhow::anyhow!("{text}"));
    let authority = match &args.ca {
        Some(path) => read(path).map_err(|text| wrong(format!("{}: {text}", path.display())))?,
        None => make_authority("Polygraph CA", args.key_type).map_err(wrong)?,
    };
    let key = make_key(args.key_type).map_err(wrong)?;
    let validity = if args.expired { Validity::Expired } else { Validity::Always };
    let made = write_all(args, &authority, &names, |names| sign(&authority, names, &key, validity));
    let files = made.map_err(wrong)?;
    let mut out = io::stdout().lock();
    let places = args.out.display();
    let _ = writeln!(
        out,
        "{places}: the authority (ca.crt, ca.pem) and {}",
        text::counted(files as u64, "certificate")
    );
    Ok(ExitCode::from(exit::OK))
}

fn read(path: &Path) -> Result<Identity, String> {
    let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    PemFile::parse(&text)?.identity()
}

/// The hosts of all address maps and of all servers.
fn names_of(workload: &Workload) -> Vec<String> {
    let of_maps =
        workload.addr_maps.iter().flat_map(AddrMap::pairs).map(|(name, _)| name.addr.host.to_string());
    let of_servers = workload
        .servers
        .iter()
        .flat_map(|server| &server.agent.addresses.0)
        .map(|addr| addr.host.to_string());
    let all: BTreeSet<String> = of_maps.chain(of_servers).collect();
    all.into_iter().collect()
}

/// Writes all files and returns the number of certificates.
fn write_all(
    args: &Args,
    authority: &Identity,
    names: &[String],
    sign: impl Fn(&[String]) -> Result<Identity, String>,
) -> Result<usize, String> {
    fs::create_dir_all(&args.out).map_err(|e| format!("cannot make {}: {e}", args.out.display()))?;
    let write = |name: &str, text: &str, secret: bool| {
        let path = args.out.join(name);
        let mode = if secret { 0o600 } else { 0o644 };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    let certificates: String = authority.chain.iter().map(|der| pem::text("CERTIFICATE", der)).collect();
    write("ca.crt", &certificates, false)?;
    write("ca.pem", &pem::identity_text(authority), true)?;
    for name in names {
        let signed = sign(std::slice::from_ref(name))?;
        let file = name.replace('*', "_").replace(['/', ':'], "-");
        write(&format!("{file}.pem"), &pem::identity_text(&signed), true)?;
    }
    if names.len() <= MAX_IN_ONE {
        write("all.pem", &pem::identity_text(&sign(names)?), true)?;
    }
    Ok(names.len())
}
