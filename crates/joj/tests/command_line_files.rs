//! Goal: what a package installs beside joj fits its command line: shells complete what there is, man has a page of each command.
//! Method: the files that the built program makes, against its own help; bash and groff read them where they are installed.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

fn joj(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj")).args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = joj(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `joj --help` lists below these words, with their words.
fn commands(words: &[String]) -> Vec<Vec<String>> {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let help = printed(&arguments);
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let named = listed.lines().take_while(|line| !line.is_empty());
    let names = named.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names
        .flat_map(|name| {
            let of_this = [words, &[name.to_owned()]].concat();
            let below = commands(&of_this);
            [vec![of_this], below].concat()
        })
        .collect()
}

/// The long options of a command.
fn options(words: &[String]) -> Vec<String> {
    let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["-h"]).collect();
    let help = printed(&arguments);
    let (_, options) = help.split_once("Options:\n").unwrap();
    let listed = options.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let starts = listed.map(str::trim_start).filter(|line| line.starts_with('-'));
    let long = starts.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    long.map(|word| word.split(['=', '[', ',']).next().unwrap().to_owned()).collect()
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: {program} is not installed");
    }
    found.is_ok()
}

#[test]
fn each_shell_gets_all_commands_and_options_that_help_lists() {
    let commands = commands(&[]);
    assert!(commands.len() > 12, "{commands:?}");
    for shell in SHELLS {
        let script = printed(&["completions", shell]);
        for hidden in ["bench-worker", "lab-guest", "trace-header"] {
            assert!(!script.contains(hidden), "{shell} offers {hidden}");
        }
        for words in &commands {
            assert!(script.contains(words.last().unwrap()), "{shell} lacks {words:?}");
            // Fish names options without their dashes.
            let missing: Vec<String> = options(words)
                .into_iter()
                .filter(|option| !script.contains(option.trim_start_matches('-')))
                .collect();
            assert!(missing.is_empty(), "{shell} lacks {missing:?} of {words:?}");
        }
    }
    let wrong = joj(&["completions", "csh"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("bash"), "the shells are named");
}

#[test]
fn bash_completes_commands_and_options() {
    if !has("bash") {
        return;
    }
    let complete = |words: &str, at: usize| {
        let script = format!(
            "{}\nCOMP_WORDS=({words}); COMP_CWORD={at}; _joj joj \"${{COMP_WORDS[$COMP_CWORD]}}\" \"\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            printed(&["completions", "bash"])
        );
        let mut bash = Command::new("bash")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = bash.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
        let words: Vec<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        words
    };
    assert_eq!(complete("joj com", 1), ["compare", "completions"]);
    assert_eq!(complete("joj bench --threa", 2), ["--threads"]);
    assert!(complete("joj lab r", 2).contains(&"run".to_owned()));
}

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

#[test]
fn man_has_a_page_of_each_command_with_its_options() {
    let place = directory("man");
    printed(&["man", place.to_str().unwrap()]);
    let all = [vec![Vec::new()], commands(&[])].concat();
    for words in &all {
        let name = [&["joj".to_owned()][..], words].concat().join("-");
        let page = fs::read_to_string(place.join(format!("{name}.1")))
            .unwrap_or_else(|_| panic!("no page of {name}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{name}");
        let plain = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "");
        let missing: Vec<String> =
            options(words).into_iter().filter(|option| !plain.contains(option)).collect();
        assert!(missing.is_empty(), "{name} lacks {missing:?}");
    }
    let pages: Vec<PathBuf> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(
        pages.len(),
        all.len(),
        "a page of nothing, or of a command that is not for people: {pages:?}"
    );
    let bench = fs::read_to_string(place.join("joj-bench.1")).unwrap();
    assert!(bench.contains(".SH EXAMPLES\n.nf\n  joj bench  "), "an example keeps its line");
    if has("groff") {
        for page in &pages {
            let output = Command::new("groff").args(["-man", "-Tutf8", "-ww"]).arg(page).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", page.display());
        }
    }
    let file = place.join("joj.1");
    let refused = joj(&["man", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("name a directory"));
    fs::remove_dir_all(&place).unwrap();
}
