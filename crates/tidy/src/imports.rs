//! Which file of a crate imports which, read from its `use` declarations and from paths in its code.
//!
//! Names that a module re-exports lead to the file that defines them, so `use crate::Thing` is an import of the file of
//! `Thing`, not of `lib.rs`. Modules that exist only in tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// An absolute path inside a crate, without the word `crate`.
type Segments = Vec<String>;

/// What is known of one module.
#[derive(Default)]
struct Module {
    file: usize,
    /// Names that the module brings in by `use`, and where they come from.
    uses: BTreeMap<String, Segments>,
    /// Modules all of whose names are brought in.
    globs: Vec<Segments>,
    /// Names that the module defines itself.
    defined: BTreeSet<String>,
}

/// The files of a crate and the imports among them.
pub struct Imports {
    /// The files, relative to the crate's `src/`.
    pub files: Vec<PathBuf>,
    /// The module that each file holds: `["exchange", "reply"]`; empty for the root.
    pub modules: Vec<Vec<String>>,
    /// For each file, the files that it imports.
    pub edges: Vec<BTreeSet<usize>>,
}

/// Paths of a module as they are written.
struct Written {
    module: Segments,
    paths: Vec<Segments>,
}

struct Reader {
    source: PathBuf,
    files: Vec<PathBuf>,
    homes: Vec<Segments>,
    modules: BTreeMap<Segments, Module>,
    written: Vec<Written>,
}

/// Reads the crate whose root file is `root`, usually `src/lib.rs` or `src/main.rs`.
///
/// # Panics
/// If a file cannot be read or is not Rust.
pub fn of_crate(root: &Path) -> Imports {
    let source = root.parent().expect("a root file stands in a folder").to_path_buf();
    let mut reader = Reader {
        source: source.clone(),
        files: Vec::new(),
        homes: Vec::new(),
        modules: BTreeMap::new(),
        written: Vec::new(),
    };
    reader.file(root, Vec::new(), &source);
    let mut edges = vec![BTreeSet::new(); reader.files.len()];
    for written in &reader.written {
        let from = reader.modules[&written.module].file;
        for path in &written.paths {
            let Some(absolute) = reader.absolute(&written.module, path) else { continue };
            let to = reader.definer(&absolute, 0);
            if to != from {
                edges[from].insert(to);
            }
        }
    }
    Imports { files: reader.files, modules: reader.homes, edges }
}

impl Reader {
    fn file(&mut self, path: &Path, module: Segments, folder: &Path) {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = self.files.len();
        self.files.push(path.strip_prefix(&self.source).expect("modules stand below the root").to_path_buf());
        self.homes.push(module.clone());
        self.module(&parsed.items, module, file, folder);
    }

    fn module(&mut self, items: &[Item], module: Segments, file: usize, folder: &Path) {
        self.modules.insert(module.clone(), Module { file, ..Module::default() });
        let mut paths = Vec::new();
        for item in items.iter().filter(|item| !is_for_tests(item)) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let mut below = module.clone();
                    below.push(name.clone());
                    self.define(&module, &name);
                    match &inner.content {
                        Some((_, items)) => self.module(items, below, file, &folder.join(&name)),
                        None => {
                            let flat = folder.join(format!("{name}.rs"));
                            let nested = folder.join(&name).join("mod.rs");
                            let path = if flat.is_file() { flat } else { nested };
                            self.file(&path, below, &folder.join(&name));
                        }
                    }
                }
                Item::Use(declaration) => {
                    let mut found = Vec::new();
                    flatten(&declaration.tree, &mut Vec::new(), &mut found);
                    for (path, name) in found {
                        paths.push(path.clone());
                        let here = self.modules.get_mut(&module).expect("the module was just inserted");
                        match name {
                            Some(name) => drop(here.uses.insert(name, path)),
                            None => here.globs.push(path),
                        }
                    }
                }
                other => {
                    if let Some(name) = name_of(other) {
                        self.define(&module, &name);
                    }
                    let mut collector = Collector { paths: Vec::new() };
                    collector.visit_item(other);
                    paths.extend(collector.paths);
                }
            }
        }
        self.written.push(Written { module, paths });
    }

    fn define(&mut self, module: &Segments, name: &str) {
        self.modules.get_mut(module).expect("modules are inserted first").defined.insert(name.to_owned());
    }

    /// The path from the root of the crate; `None` if it leads to another crate or to a local name.
    fn absolute(&self, module: &Segments, path: &[String]) -> Option<Segments> {
        let mut base = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let mut child = module.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    return None;
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The file that defines what `path` names, as far as the names can be followed.
    fn definer(&self, path: &[String], depth: usize) -> usize {
        let mut here: Segments = Vec::new();
        for (at, segment) in path.iter().enumerate() {
            let mut below = here.clone();
            below.push(segment.clone());
            if self.modules.contains_key(&below) {
                here = below;
                continue;
            }
            let module = &self.modules[&here];
            if depth < 8 && !module.defined.contains(segment) {
                if let Some(target) = module.uses.get(segment).and_then(|path| self.absolute(&here, path)) {
                    let whole: Segments = target.into_iter().chain(path[at + 1..].iter().cloned()).collect();
                    return self.definer(&whole, depth + 1);
                }
                for glob in module.globs.iter().filter_map(|path| self.absolute(&here, path)) {
                    if self.modules.get(&glob).is_some_and(|module| module.defined.contains(segment)) {
                        return self.modules[&glob].file;
                    }
                }
            }
            return module.file;
        }
        self.modules[&here].file
    }
}

fn is_for_tests(item: &Item) -> bool {
    attributes(item).iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg")
            && list.tokens.to_string().split(|c: char| !c.is_alphabetic()).any(|w| w == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The single paths of a `use` tree, each with the name that it brings in; `None` for a glob.
fn flatten(tree: &UseTree, before: &mut Segments, found: &mut Vec<(Segments, Option<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.push((before.clone(), before.last().cloned()));
        }
        UseTree::Name(name) => {
            let path = before.iter().cloned().chain([name.ident.to_string()]).collect();
            found.push((path, Some(name.ident.to_string())));
        }
        UseTree::Rename(rename) => {
            let mut path = before.clone();
            if rename.ident != "self" {
                path.push(rename.ident.to_string());
            }
            found.push((path, Some(rename.rename.to_string())));
        }
        UseTree::Glob(_) => found.push((before.clone(), None)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
    }
}

/// Collects paths of code that may lead to other files.
struct Collector {
    paths: Vec<Segments>,
}

impl<'a> Visit<'a> for Collector {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, declaration: &'a syn::ItemUse) {
        let mut found = Vec::new();
        flatten(&declaration.tree, &mut Vec::new(), &mut found);
        self.paths.extend(found.into_iter().map(|(path, _)| path));
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}

impl Collector {
    /// The paths in the tokens of a macro call, which are not parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Segments = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.take(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.take(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.take(&mut path);
                    colons = 0;
                }
            }
        }
        self.take(&mut path);
    }

    fn take(&mut self, path: &mut Segments) {
        if path.len() > 1 {
            self.paths.push(std::mem::take(path));
        }
        path.clear();
    }
}
