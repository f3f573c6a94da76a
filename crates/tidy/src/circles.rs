//! Circles among the files of a crate: files that import each other, directly or through others.

use std::collections::BTreeSet;

use crate::imports::Imports;

/// The circles that are more than a parent module and its children. A parent and its child may use each other, for they
/// are one idea in two files; two children, or files further apart, may not.
pub fn circles(imports: &Imports) -> Vec<Vec<usize>> {
    let all = (0..imports.files.len()).collect();
    let mut found = Vec::new();
    within(imports, &all, &mut found);
    found
}

fn within(imports: &Imports, files: &BTreeSet<usize>, found: &mut Vec<Vec<usize>>) {
    for component in components(imports, files) {
        if component.len() < 2 {
            continue;
        }
        let parent = component.iter().copied().find(|&candidate| {
            let home = &imports.modules[candidate];
            component.iter().all(|&file| file == candidate || imports.modules[file].starts_with(home))
        });
        match parent {
            Some(parent) => {
                let rest = component.iter().copied().filter(|&file| file != parent).collect();
                within(imports, &rest, found);
            }
            None => found.push(component),
        }
    }
}

/// The strongly connected components of `files`, by the algorithm of Kosaraju: files in the order in which a search
/// leaves them, then a search against the arrows from the last one on.
fn components(imports: &Imports, files: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let mut left = Vec::new();
    for &file in files {
        leave(imports, files, file, &mut seen, &mut left);
    }
    let mut taken = BTreeSet::new();
    let mut found = Vec::new();
    for &file in left.iter().rev() {
        let mut component = Vec::new();
        let mut open = vec![file];
        while let Some(next) = open.pop() {
            if taken.insert(next) {
                component.push(next);
                open.extend(files.iter().copied().filter(|&other| imports.edges[other].contains(&next)));
            }
        }
        if !component.is_empty() {
            component.sort_unstable();
            found.push(component);
        }
    }
    found
}

fn leave(
    imports: &Imports,
    files: &BTreeSet<usize>,
    file: usize,
    seen: &mut BTreeSet<usize>,
    left: &mut Vec<usize>,
) {
    if !seen.insert(file) {
        return;
    }
    for &next in imports.edges[file].intersection(files) {
        leave(imports, files, next, seen, left);
    }
    left.push(file);
}

/// A circle as a person reads it: each file with those members of the circle that it imports.
pub fn describe(imports: &Imports, circle: &[usize]) -> String {
    let members: BTreeSet<usize> = circle.iter().copied().collect();
    let lines = circle.iter().map(|&file| {
        let to: Vec<String> = imports.edges[file]
            .intersection(&members)
            .map(|&other| imports.files[other].display().to_string())
            .collect();
        format!("    {} -> {}", imports.files[file].display(), to.join(", "))
    });
    format!("{} files\n{}", circle.len(), lines.collect::<Vec<_>>().join("\n"))
}
