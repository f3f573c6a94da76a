//! Authorities and keys of generated certificates. Those of a sharing group are the same in the whole process; if the name of the
//! group starts with `/`, they are in files and are the same in later runs and in other processes.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use polygraph_tls::pem::{self, PemFile};
use polygraph_tls::settings::{Identity, KeyKind};
use polygraph_tls::{make_authority, make_key};

/// The texts of what was made for sharing groups, by group and kind.
static MADE: Mutex<Option<HashMap<(String, String), String>>> = Mutex::new(None);

/// The authority of a sharing group, or a new one.
///
/// # Errors
/// If it cannot be made, or a file cannot be read or written.
pub fn authority(sharing_group: Option<&str>) -> Result<Identity, String> {
    let make = || {
        let name = sharing_group.and_then(|group| group.rsplit('/').next()).filter(|name| !name.is_empty());
        // Not the name of those that `polygraph certs` makes: tables of issuers show who intercepted a tunnel.
        let name = format!("Polygraph CA {}", name.unwrap_or("of this test"));
        Ok(pem::identity_text(&make_authority(&name, KeyKind::EcdsaP256)?))
    };
    PemFile::parse(&shared(sharing_group, "ca", make)?)?.identity()
}

/// The private key of a sharing group, or a new one.
///
/// # Errors
/// As [`authority`].
pub fn private_key(sharing_group: Option<&str>, kind: KeyKind) -> Result<Vec<u8>, String> {
    let make = || Ok(pem::text("PRIVATE KEY", &make_key(kind)?));
    let text = shared(sharing_group, &format!("key-{}", kind.name().to_lowercase()), make)?;
    PemFile::parse(&text)?.keys.pop().ok_or_else(|| format!("no private key of the group {sharing_group:?}"))
}

/// The text of what a group shares under this name.
fn shared(
    group: Option<&str>,
    name: &str,
    make: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    let Some(group) = group else { return make() };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_default();
    let key = (group.to_owned(), name.to_owned());
    if let Some(known) = made.get(&key) {
        return Ok(known.clone());
    }
    let text = match group.starts_with('/') {
        true => stored(&PathBuf::from(format!("{group}-{name}.pem")), make)?,
        false => make()?,
    };
    made.insert(key, text.clone());
    Ok(text)
}

/// The text of a file, which is made if it does not exist. Private keys are for the owner of the file only.
fn stored(path: &PathBuf, make: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
    let problem =
        |what: &str, e: io::Error| format!("`sharing_group`: cannot {what} {}: {e}", path.display());
    match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        read => return read.map_err(|e| problem("read", e)),
    }
    let text = make()?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| problem("make the folder of", e))?;
    }
    // Another process may be about to make the same file: whoever links it first wins, and the file is never incomplete.
    let mine = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&mine)?;
        file.write_all(text.as_bytes())?;
        match fs::hard_link(&mine, path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    };
    let written = write();
    let _ = fs::remove_file(&mine);
    written.map_err(|e| problem("write", e))?;
    fs::read_to_string(path).map_err(|e| problem("read", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_has_a_name_of_its_own() {
        let named = |group: Option<&str>, name: &str| {
            let certificate = authority(group).unwrap().chain.swap_remove(0);
            certificate.windows(name.len()).any(|bytes| bytes == name.as_bytes())
        };
        assert!(named(None, "Polygraph CA of this test"));
        assert!(named(Some("farm"), "Polygraph CA farm"));
    }
}
