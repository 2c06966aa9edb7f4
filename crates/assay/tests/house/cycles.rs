//! No import cycles between the files of a crate: sibling files and folders import each other in one direction only. Imports
//! between a module and its descendants are allowed.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

type ModulePath = Vec<String>;

/// Longest chain of re-exports that is followed.
const MAX_REEXPORTS: usize = 5;

/// The paths in a file that start with `crate`, `self` or `super`.
#[derive(Default)]
struct Module {
    file: String,
    imports: Vec<ModulePath>,
    /// Targets of its `pub use`, by name.
    reexports: BTreeMap<String, ModulePath>,
}

impl Module {
    fn parse(file: &str, source: &str) -> Self {
        let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap()).collect();
        let code = code.join("\n");
        let tokens = tokens(&code);
        let mut module = Self { file: file.to_owned(), ..Self::default() };
        let mut at = 0;
        while at < tokens.len() {
            let starts_a_path = ["crate", "self", "super"].contains(&tokens[at])
                && tokens.get(at + 1) == Some(&"::")
                && (at == 0 || tokens[at - 1] != "::");
            if !starts_a_path {
                at += 1;
                continue;
            }
            let is_reexport = at > 1 && tokens[at - 1] == "use" && ["pub", ")"].contains(&tokens[at - 2]);
            let mut imported = Vec::new();
            at = read_path(&tokens, at, &[], &mut imported);
            for (path, name) in imported {
                if is_reexport {
                    module.reexports.insert(name, path.clone());
                }
                module.imports.push(path);
            }
        }
        module
    }
}

/// Names, `::`, and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_in_name = |character: char| character.is_alphanumeric() || character == '_';
        let length = match rest.find(|character| !is_in_name(character)) {
            Some(0) if rest.starts_with("::") => 2,
            Some(0) => first.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Reads the path at `at`, also one with braces. Adds each imported path with its local name to `imported`. Returns the index
/// after the path.
fn read_path(
    tokens: &[&str],
    mut at: usize,
    prefix: &[String],
    imported: &mut Vec<(ModulePath, String)>,
) -> usize {
    let token = |at: usize| tokens.get(at).copied().unwrap_or("");
    let mut path = prefix.to_vec();
    loop {
        if token(at) == "{" {
            while !["}", ""].contains(&token(at)) {
                at = read_path(tokens, at + 1, &path, imported);
            }
            return at + 1;
        }
        if !["}", "*", "<"].contains(&token(at)) {
            path.push(token(at).to_owned());
            at += 1;
        }
        if token(at) != "::" {
            break;
        }
        at += 1;
    }
    if token(at) == "*" {
        at += 1;
    }
    let is_renamed = token(at) == "as";
    let name = if is_renamed { token(at + 1) } else { path.last().map_or("", String::as_str) }.to_owned();
    imported.push((path, name));
    if is_renamed { at + 2 } else { at }
}

/// The module that defines the target of `path` in the module `from`. Follows up to `max_reexports` re-exports.
fn resolve(
    modules: &BTreeMap<ModulePath, Module>,
    from: &ModulePath,
    path: &[String],
    max_reexports: usize,
) -> ModulePath {
    let mut found = from.clone();
    let mut rest = path;
    while let [first, others @ ..] = rest {
        match first.as_str() {
            "crate" => found.clear(),
            "self" => {}
            "super" => drop(found.pop()),
            name => {
                let child = [&found[..], &[name.to_owned()]].concat();
                if !modules.contains_key(&child) {
                    break;
                }
                found = child;
            }
        }
        rest = others;
    }
    let reexport = rest.first().and_then(|name| modules.get(&found)?.reexports.get(name));
    match reexport {
        Some(path) if max_reexports > 0 => resolve(modules, &found, path, max_reexports - 1),
        _ => found,
    }
}

#[test]
fn sibling_modules_have_no_import_cycles() {
    let mut crates: BTreeMap<String, BTreeMap<ModulePath, Module>> = BTreeMap::new();
    for (file, source) in sources() {
        let (name, inner) = file.trim_start_matches("crates/").split_once("/src/").unwrap();
        if inner.starts_with("bin/") || inner.ends_with("tests.rs") {
            continue;
        }
        let mut path: ModulePath = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if ["mod", "lib", "main"].contains(&path.last().unwrap().as_str()) {
            path.pop();
        }
        crates.entry(name.to_owned()).or_default().insert(path, Module::parse(&file, &source));
    }
    let mut cycles = Vec::new();
    for modules in crates.values() {
        cycles.extend(imports_in_cycles(modules));
    }
    assert!(cycles.is_empty(), "import cycles:\n{}", cycles.join("\n"));
}

/// The imports between sibling modules that are in a cycle, or on a path between two cycles.
fn imports_in_cycles(modules: &BTreeMap<ModulePath, Module>) -> Vec<String> {
    let mut edges: Vec<(ModulePath, ModulePath, String)> = Vec::new();
    for (path, module) in modules {
        for import in &module.imports {
            let target = resolve(modules, path, import, MAX_REEXPORTS);
            let shared = path.iter().zip(&target).take_while(|(left, right)| left == right).count();
            let is_same_or_nested = shared == path.len() || shared == target.len();
            if !is_same_or_nested {
                let (from, to) = (path[..=shared].to_vec(), target[..=shared].to_vec());
                edges.push((from, to, format!("{} imports {}", module.file, import.join("::"))));
            }
        }
    }
    // An import is in no cycle if nothing imports its source, or its target imports nothing.
    loop {
        let from: BTreeSet<ModulePath> = edges.iter().map(|(from, ..)| from.clone()).collect();
        let to: BTreeSet<ModulePath> = edges.iter().map(|(_, to, _)| to.clone()).collect();
        let before = edges.len();
        edges.retain(|edge| to.contains(&edge.0) && from.contains(&edge.1));
        if edges.len() == before {
            return edges.into_iter().map(|(.., import)| import).collect();
        }
    }
}

#[test]
fn cycles_are_found_through_braces_and_reexports() {
    let module = |file: &str, source: &str| {
        let path = file.split('/').filter(|part| *part != "mod").map(str::to_owned).collect();
        (path, Module::parse(file, source))
    };
    let cycles = imports_in_cycles(&BTreeMap::from([
        module("a/mod", "mod one;\nmod two;\npub(crate) use self::two::{Other as Two, more};"),
        module("a/one", "use std::fmt;\nuse super::{\n    Two,\n    unrelated,\n};\nuse crate::b;"),
        module("a/two", "// use crate::b::C;\nfn two() { super::one::call() }"),
        module("b", "#[cfg(test)]\nmod tests {\n    use crate::a::one;\n}"),
    ]));
    assert_eq!(cycles, ["a/one imports super::Two", "a/two imports super::one::call"]);
}
