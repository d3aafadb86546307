//! Goal: a command that a document shows is one that works.
//! Method: the commands of all documents are gathered: joj takes each one's options, what make, cargo and `tests/` are asked for is there.
//! Those that need nothing are run; the guide's first ones are run in their order, on a volume of their own.

mod trace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trace::volume::volume_or_skip;

/// A command, and where it stands.
struct Shown {
    place: String,
    words: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Documents for people. Results and tests' data are none.
fn documents() -> Vec<PathBuf> {
    let listed = |folder: &str| {
        fs::read_dir(root().join(folder)).expect(folder).map(|entry| entry.expect("an entry").path())
    };
    let mut found: Vec<PathBuf> = [".", "docs", "docs/decisions", "fixtures/traces", "fixtures/lab"]
        .into_iter()
        .flat_map(listed)
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("CHANGELOG.md")
        })
        .collect();
    found.sort();
    found
}

/// The words of a line as a shell takes them, up to its comment.
fn words(line: &str) -> Vec<String> {
    // A choice of two is one word, no pipe.
    let line = line.replace('|', "\\|");
    let script = format!("set -f; for word in {line}\ndo printf '%s\\n' \"$word\"; done");
    let output = Command::new("sh").args(["-c", &script]).output().expect("sh");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("words").lines().map(str::to_owned).collect()
}

fn is_command(text: &str) -> bool {
    ["joj ", "target/release/joj ", "make ", "cargo ", "tests/"].iter().any(|start| text.starts_with(start))
}

/// What a text shows: the lines of its `sh` blocks, what its `yaml` blocks run, and the commands between backticks.
fn shown(path: &Path) -> Vec<Shown> {
    let (mut found, mut block) = (Vec::new(), None);
    // A command that goes on in the next line is one.
    for (line, number) in read(path).replace("\\\n", "").lines().zip(1..) {
        let mut take = |text: &str| {
            found.push(Shown { place: format!("{}:{number}: {text}", path.display()), words: words(text) });
        };
        match (line.strip_prefix("```"), block.as_deref()) {
            (Some(_), Some(_)) => block = None,
            (Some(kind), None) => block = Some(kind.to_owned()),
            (None, Some("sh")) => line.split(" && ").filter(|part| !part.starts_with("cd ")).for_each(take),
            // A job of CI: what it runs stands behind `run:`, or in a line of its own below it.
            (None, Some("yaml")) => {
                let text = line.trim_start().trim_start_matches("- ").trim_start_matches("run: ");
                if is_command(text) {
                    take(text);
                }
            }
            (None, Some(_)) => {}
            (None, None) => {
                // A path alone is a file, which the links' test knows.
                let is_one = |text: &&str| is_command(text) && text.contains(' ');
                line.split('`').skip(1).step_by(2).filter(is_one).for_each(&mut take);
            }
        }
    }
    found
}

fn joj(arguments: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_joj")).current_dir(root()).args(arguments).output().expect("joj")
}

/// joj takes these options: it explains the command that they belong to.
fn takes(arguments: &[String]) -> Result<(), String> {
    let behind = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let mut arguments = arguments.get(..behind).expect("within").to_vec();
    arguments.push("--help".into());
    let output = joj(&arguments);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // A text may name an option without its value.
    let is_named = told.contains("a value is required");
    if output.status.success() || is_named { Ok(()) } else { Err(told) }
}

/// The values of an option that may stand several times.
fn values<'a>(words: &'a [String], option: &str) -> Vec<&'a str> {
    words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str()).collect()
}

fn has_test(package: &str, words: &[String]) -> Result<(), String> {
    let folder = root().join("crates").join(package);
    if !folder.is_dir() {
        return Err(format!("no package {package}"));
    }
    for test in values(words, "--test") {
        if !folder.join(format!("tests/{test}.rs")).is_file() {
            return Err(format!("no test {test}"));
        }
    }
    let features = values(words, "--features").into_iter().flat_map(|list| list.split(','));
    let manifest = read(folder.join("Cargo.toml"));
    match features.into_iter().find(|feature| !manifest.contains(&format!("\n{feature} = "))) {
        Some(feature) => Err(format!("no feature {feature}")),
        None => Ok(()),
    }
}

fn is_there(words: &[String]) -> Result<(), String> {
    // A variable may stand in front.
    let is_variable =
        |word: &&String| word.split_once('=').is_some_and(|(name, _)| name == name.to_uppercase());
    let words = words.iter().skip_while(is_variable);
    let words: Vec<String> = words.map(|word| word.replace("target/release/joj", "joj")).collect();
    let [program, arguments @ ..] = words.as_slice() else { return Err("nothing".into()) };
    match (program.as_str(), arguments.first().map(String::as_str)) {
        ("joj", _) => takes(arguments),
        ("make", Some(target)) if read(root().join("Makefile")).contains(&format!("\n{target}:")) => Ok(()),
        ("cargo", Some("test")) => {
            values(&words, "-p").into_iter().try_for_each(|package| has_test(package, arguments))
        }
        ("cargo", Some("build" | "publish")) => {
            values(&words, "-p").into_iter().try_for_each(|package| has_test(package, &[]))
        }
        ("cargo", Some("fmt" | "install")) => Ok(()),
        (script, _) if script.starts_with("tests/") => {
            let text = read(root().join(script));
            let missing =
                arguments.iter().find(|word| word.starts_with("--") && !text.contains(word.as_str()));
            missing.map_or(Ok(()), |option| Err(format!("{script} has no {option}")))
        }
        _ => Err("this test does not know such a command".into()),
    }
}

#[test]
fn each_command_that_a_document_shows_is_there() {
    let (mut count, mut wrong) = (0, Vec::new());
    for shown in documents().iter().flat_map(|path| shown(path)) {
        count += 1;
        if let Err(why) = is_there(&shown.words) {
            wrong.push(format!("{}\n    {why}", shown.place));
        }
    }
    assert!(count > 80, "{count} commands in all documents");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_command_is_noticed() {
    for line in [
        "joj bench --no-such-option",
        "joj no-such-command",
        "make no-such-target",
        "cargo test -p waldio --test no_such_test",
        "cargo test -p waldio --features no-such-feature",
        "tests/mutants.py --no-such-option 1",
        "rm -rf /",
    ] {
        assert!(is_there(&words(line)).is_err(), "{line}");
    }
}

/// What asks for nothing that is not there prints something.
#[test]
fn the_commands_that_list_and_explain_are_run() {
    let quick = ["lab list", "device list", "--help"];
    let mut run = 0;
    for shown in documents().iter().flat_map(|path| shown(path)).filter(|shown| shown.words[0] == "joj") {
        let line = shown.words[1..].join(" ");
        if quick.iter().any(|end| line.ends_with(end)) {
            let output = joj(&shown.words[1..]);
            assert!(output.status.success() && !output.stdout.is_empty(), "{}", shown.place);
            run += 1;
        }
    }
    assert!(run >= quick.len(), "{run} were found");
    let devices = String::from_utf8(joj(&["device", "list"].map(str::to_owned)).stdout).expect("names");
    let name = devices.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a device");
    assert!(joj(&["device", "show", name].map(str::to_owned)).status.success(), "{name}");
}

/// docs/tracing.md begins with four commands. Here they have a volume of their own, another program's number, and a second each.
#[test]
fn the_guides_first_commands_do_what_it_says() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    let guide = root().join("docs/tracing.md");
    let commands: Vec<Shown> =
        shown(&guide).into_iter().filter(|shown| shown.words.len() > 4).take(4).collect();
    let sql = |statement: &str| {
        Command::new("sqlite3")
            .current_dir(volume.path())
            .args(["app.db", statement])
            .status()
            .expect("sqlite3")
    };
    assert!(sql("CREATE TABLE t(x)").success());
    let run = |shown: &Shown, number: &str| {
        let words = shown.words[1..].iter().map(|word| match word.as_str() {
            "4242" => number.to_owned(),
            "/dev/vda" => volume.path().display().to_string(),
            "30s" | "60s" => "1s".to_owned(),
            "day.parquet" | "day.html" => volume.beside(word).display().to_string(),
            word => word.to_owned(),
        });
        let joj = Command::new(env!("CARGO_BIN_EXE_joj")).current_dir(volume.path()).args(words).output();
        let output = joj.expect("joj");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{}: {said}", shown.place);
        String::from_utf8(output.stdout).expect("a summary")
    };
    // It ends with its last command, so that nothing holds the volume.
    fs::write(volume.path().join("go"), "").expect("a file");
    let busy = "while [ -e go ]; do sqlite3 other.db 'CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES(1)'; done";
    let mut shell = Command::new("timeout");
    let mut shell = shell.args(["60", "sh", "-c", busy]).current_dir(volume.path()).spawn().expect("sh");
    let printed: Vec<String> = commands.iter().map(|shown| run(shown, &shell.id().to_string())).collect();
    fs::remove_file(volume.path().join("go")).and_then(|()| shell.wait()).expect("the shell ends");
    let steps = &printed[0][printed[0].find("\ncommit ").expect("a commit step by step")..];
    assert!(steps.contains("/app.db") && !steps.contains("/other.db"), "the command's own: {steps}");
    assert!(printed.len() == 4 && read(volume.beside("day.html")).contains("<html"), "a page");
}
