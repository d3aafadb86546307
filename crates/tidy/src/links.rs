//! Links in Markdown that lead to a file of the repository.

use crate::tree::{SourceFile, Tree, Violation};

/// Links of `.md` files to files that are not there.
pub fn dead_links(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(file) {
            if !tree.contains(&resolve(&file.path, target)) {
                found.push(Violation::new(file, line, format!("the link's target {target} does not exist")));
            }
        }
    }
    found
}

/// (line, target without its #part) of every link to a file, outside fenced code.
fn links(file: &SourceFile) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text().unwrap_or("").lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for after in line.split("](").skip(1) {
            let target = after.split([')', ' ']).next().unwrap_or("");
            let path = target.split('#').next().unwrap_or("");
            if !path.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, path));
            }
        }
    }
    found
}

/// `target` as seen from the file `from`, as a path from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_link_is_found_where_it_stands() {
        let text =
            "[a](b.md)\n[a](gone.md#part) [c](../README.md)\n```\n[d](e)\n```\n[f](https://g.h) [i](#part)\n";
        let tree = Tree::sample(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "[docs](docs/)\n")]);
        let found = dead_links(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("docs/a.md", 2));
    }
}
