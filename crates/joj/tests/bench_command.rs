//! Goal: `joj bench` and `joj compare` do for a user what their help says, and leave nothing behind.
//! Method: the built program, few transactions, a directory of the build tree; no figure is judged, only its presence.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

mod waldio;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, Workload};
use waldio::extension;

/// The modes that need no extension.
const STOCK: &str = "delete,truncate,persist,memory,off,wal";

/// A fresh directory on the disk that the build uses.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn joj(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joj"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    joj(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Runs the bench in `place`; the parsed JSON.
fn bench(place: &Path, more: &[&str]) -> Document {
    let mut arguments =
        vec!["bench", place.to_str().unwrap(), "--transactions", "20", "--runs", "1", "--json", "-"];
    arguments.extend(more);
    let output = run(&arguments);
    assert!(output.status.success(), "{more:?}: {}", text(&output.stderr));
    assert_eq!(entries(place), Vec::<PathBuf>::new(), "files left behind");
    Document::parse(&text(&output.stdout)).unwrap()
}

#[test]
fn every_workload_on_every_stock_mode_is_sound() {
    let place = directory("every");
    let document = bench(&place, &["--modes", STOCK, "--builds", "bundled"]);
    for workload in [Workload::Insert, Workload::Update, Workload::Delete, Workload::Read, Workload::Open] {
        for mode in [
            JournalMode::Delete,
            JournalMode::Truncate,
            JournalMode::Persist,
            JournalMode::Memory,
            JournalMode::Off,
            JournalMode::Wal,
        ] {
            let found = document.rows.iter().find(|row| row.key.workload == workload && row.key.mode == mode);
            let row = found.unwrap_or_else(|| panic!("no row for {workload:?} on {mode:?}"));
            assert_eq!(row.failure, None, "{}", row.key);
            let summary = row.summary.as_ref().unwrap();
            assert!(
                summary.transactions_per_s.median > 0.0 && summary.latency.max_ns >= summary.latency.p50_ns
            );
            assert_eq!(row.latency_quantiles_ns.len(), document.quantile_parts.len());
            assert_eq!(row.runs.len(), 1);
        }
    }
    assert_eq!(document.limits.len(), 3);
    assert!(document.best_limit().is_some(), "{:?}", document.limits);
    assert!(document.environment.started_at.ends_with('Z') && document.environment.cores > 0);
    assert!(document.builds[0].version.starts_with("3."), "{:?}", document.builds);
}

/// One insert is one flush in WAL mode and several in DELETE mode; without seccomp there is nothing to check.
#[test]
fn calls_for_durability_are_counted_for_each_mode() {
    let place = directory("syncs");
    let document = bench(
        &place,
        &["--modes", "delete,wal", "--workloads", "insert", "--schemas", "waldio", "--sync", "full"],
    );
    for row in &document.rows {
        let Some(syncs) = &row.syncs else { continue };
        let expected = if row.key.mode == JournalMode::Wal { 1.0..1.2 } else { 3.0..6.0 };
        assert!(expected.contains(&syncs.per_transaction()), "{}: {syncs:?}", row.key);
    }
}

#[test]
fn waldio_rows_are_sound_where_the_extension_is_built() {
    let Some(extension) = extension() else { return };
    let place = directory("waldio");
    let usable = run(&[
        "bench",
        place.to_str().unwrap(),
        "--transactions",
        "1",
        "--runs",
        "1",
        "--modes",
        "waldio",
        "--workloads",
        "insert",
        "--schemas",
        "waldio",
        "--log",
        "fresh",
        "--waldio",
        extension.to_str().unwrap(),
    ]);
    assert!(usable.status.success(), "{} is not usable: {}", extension.display(), text(&usable.stderr));
    for (option, parts) in [
        ("persist=nonsense", ["waldio_persist is auto, flush or fua", "mend the option"]),
        ("persit=flush", ["no option waldio_persit", "persist,"]),
    ] {
        let here = place.to_str().unwrap();
        let output =
            run(&["bench", here, "--waldio", extension.to_str().unwrap(), "--waldio-option", option]);
        let message = text(&output.stderr);
        assert!(!output.status.success() && parts.iter().all(|part| message.contains(part)), "{message}");
        assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
    }
    let document = bench(
        &place,
        &[
            "--modes",
            "wal,waldio",
            "--waldio-option",
            "persist=flush",
            "--builds",
            "bundled",
            "--waldio",
            extension.to_str().unwrap(),
        ],
    );
    assert!(document.is_sound());
    assert_eq!(document.environment.waldio.as_ref().unwrap().options, ["persist=flush"]);
    let compared = document.rows.iter().filter(|row| row.key.mode == JournalMode::Waldio);
    assert!(compared.map(|row| row.summary.as_ref().unwrap()).all(|row| row.versus_stock_wal.is_some()));
}

/// Where `part` stands in `shown`.
fn place_of(part: &str, shown: &str) -> usize {
    shown.find(part).unwrap_or_else(|| panic!("no `{part}` in: {shown}"))
}

#[test]
fn the_default_run_has_8_threads_and_says_in_words_what_it_found() {
    let Some(extension) = extension() else { return };
    let place = directory("default");
    let json = directory("default-result").join("result.json");
    let files = ["--json", json.to_str().unwrap(), "--waldio", extension.to_str().unwrap()];
    let mut arguments =
        vec!["bench", place.to_str().unwrap(), "--transactions", "5", "--runs", "1", "--quick"];
    arguments.extend(files.iter().chain(&["--builds", "system"]));
    let output = run(&arguments);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(told.contains("many writers: round 1 of 1, about ") && told.contains(" left\n"), "{told}");
    let document = Document::parse(&fs::read_to_string(&json).unwrap()).unwrap();
    let writers: Vec<u32> = document.contended.iter().map(|row| row.key.writers).collect();
    assert_eq!((writers, document.plan.seconds), (vec![8, 8], Some(1.0)));
    // One run is doubtful, and tells of no difference.
    let order = [
        "WARNING: ",
        "\nYour disk: ",
        "\nMany writers: ",
        "\nOne writer: ",
        "\nWhat to change: ",
        "\nthe disk itself",
    ];
    let places: Vec<usize> = order.iter().map(|part| place_of(part, &shown)).collect();
    assert!(places.is_sorted(), "{places:?}: {shown}");
    assert!(shown.contains("tell of no") && shown.contains("three runs or more"), "{shown}");
    assert!(shown.contains("min-max") && !shown.contains("% int."), "{shown}");
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}: {shown}");
}

#[test]
fn experts_get_more_columns_and_no_wider_lines() {
    let place = directory("wide");
    let mut arguments = vec!["bench", place.to_str().unwrap(), "--transactions", "20", "--runs", "1"];
    arguments.extend([
        "--modes",
        "wal,off",
        "--workloads",
        "insert",
        "--schemas",
        "waldio",
        "--sync",
        "full",
    ]);
    let narrow = text(&run(&arguments).stdout);
    arguments.push("--wide");
    let wide = text(&run(&arguments).stdout);
    for column in ["cpu us", "switches", "calls KB", "p99.9"] {
        assert!(wide.contains(column) && !narrow.contains(column), "{column}: {narrow} {wide}");
    }
    assert!(narrow.contains("not measured") && narrow.contains("--threads 8"), "{narrow}");
    for shown in [narrow, wide] {
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let place = directory("page");
    let page = directory("page-result").join("result.html");
    let json = page.with_extension("json");
    let markdown = page.with_extension("md");
    let files = ["--html", page.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let mut arguments = vec!["bench", place.to_str().unwrap(), "--transactions", "20", "--runs", "2"];
    arguments.extend(["--markdown", markdown.to_str().unwrap()]);
    arguments.extend(["--modes", "wal,off", "--workloads", "insert,read"].iter().chain(&files));
    let output = run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("insert, schema waldio, synchronous=FULL"),
        "{}",
        text(&output.stdout)
    );
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("</html>"));
    for foreign in ["http:", "https:", "<script", "<link", "url(", "@import", " src="] {
        assert!(!html.contains(foreign), "the page contains {foreign}");
    }
    let name = json.to_str().unwrap();
    let compared = run(&["compare", name, name]);
    let shown = text(&compared.stdout);
    assert!(compared.status.success() && shown.contains("1.00"), "{shown}");
    assert!(
        shown.contains("with warnings: ") && shown.contains("few_runs"),
        "two runs are doubtful: {shown}"
    );
    assert!(!shown.contains("conditions are the same"), "nobody knows that under warnings: {shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let text_of_file = fs::read_to_string(&markdown).unwrap();
    let of_compare = text(&run(&["compare", name, name, "--markdown", "-"]).stdout);
    for (found, title) in
        [(text_of_file, "### insert, schema waldio, synchronous=FULL"), (of_compare, "| *insert, schema")]
    {
        assert!(found.contains(title) && found.contains("\n|---|--:|"), "{found}");
        let is_whole = |line: &str| !line.starts_with('|') || line.ends_with(" |") || line.ends_with("-:|");
        assert!(found.lines().all(is_whole), "{found}");
    }
    let both = run(&["bench", place.to_str().unwrap(), "--json", "-", "--markdown", "-"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));
}

/// What a job of CI asks for: the exit code alone decides.
#[test]
fn compare_fails_below_a_ratio_with_a_code_of_its_own() {
    let place = directory("fail-below");
    let mut arguments = vec!["bench", place.to_str().unwrap(), "--transactions", "20", "--runs", "3"];
    arguments.extend(["--modes", "wal,off", "--workloads", "insert", "--json", "-"]);
    let measured = Document::parse(&text(&run(&arguments).stdout)).unwrap();
    let results = directory("fail-below-results");
    let write = |name: &str, change: &dyn Fn(&mut Document)| {
        let mut document = measured.clone();
        change(&mut document);
        let file = results.join(name);
        fs::write(&file, serde_json::to_string(&document).unwrap()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let scaled = |factor: f64| {
        move |document: &mut Document| {
            for row in &mut document.rows {
                let summary = row.summary.as_mut().unwrap();
                summary.transactions_per_s = summary.transactions_per_s.scaled(factor);
            }
        }
    };
    let same = write("same.json", &|_| ());
    // No two runs of a disk differ by so much.
    let slower = write("slower.json", &scaled(0.001));
    let faster = write("faster.json", &scaled(1000.0));
    let without = write("without.json", &|document| document.rows.truncate(1));
    let empty = write("empty.json", &|document| document.rows.clear());
    let cases = [
        (&same, &same, 0, "is below 0.95"),
        (&same, &faster, 0, "is below 0.95"),
        (&same, &slower, 3, "0.00"),
        (&same, &without, 3, "only in the first"),
        (&empty, &same, 1, "no row can be judged"),
    ];
    for (first, second, code, part) in cases {
        let output = run(&["compare", first, second, "--fail-below", "0.95"]);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{first} {second}: {told}");
        assert!(told.contains(part), "{told}");
        assert_eq!(
            run(&["compare", first, second]).status.code(),
            Some(0),
            "without the option it only tells"
        );
    }
    // Lines are cut between words.
    let told = |more: &[&str]| {
        let shown = text(&run(&[&["compare", &same, &without][..], more].concat()).stdout);
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lost = measured.rows.len() - 1;
    assert!(told(&[]).contains(&format!("left out: {lost} only in the first")), "{}", told(&[]));
    assert_eq!(told(&[]).matches("only in the first").count(), 1, "one count, not a line for each");
    assert_eq!(told(&["--wide"]).matches("only in the first").count(), lost, "{}", told(&["--wide"]));
    colours_are_for_terminals(&same, &faster);
}

/// What is faster is green on a terminal, unless the user asks for no colours.
fn colours_are_for_terminals(first: &str, second: &str) {
    let on_terminal = |no_colour: &str| {
        let command = format!("{} compare {first} {second}", env!("CARGO_BIN_EXE_joj"));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", no_colour);
        script.stdin(Stdio::null()).output().map(|output| text(&output.stdout))
    };
    match (on_terminal(""), on_terminal("1")) {
        (Ok(coloured), Ok(plain)) => {
            assert!(coloured.contains("\u{1b}[32mfaster"), "{coloured}");
            assert!(plain.contains("faster") && !plain.contains('\u{1b}'), "{plain}");
        }
        _ => eprintln!("skipped: there is no `script` to be a terminal"),
    }
    assert!(!text(&run(&["compare", first, second]).stdout).contains('\u{1b}'), "a pipe is no terminal");
}

/// What a user may get wrong: the exit code, and a message that says what, where and how to mend.
#[test]
fn mistakes_are_explained() {
    let place = directory("mistakes");
    let here = place.to_str().unwrap();
    let file = directory("mistakes-files").join("file");
    fs::write(&file, "garbage").unwrap();
    let newer = file.with_file_name("newer.json");
    fs::write(&newer, "{\"format\":\"joj-bench\",\"version\":99}").unwrap();
    let (file, newer) = (file.to_str().unwrap(), newer.to_str().unwrap());
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["bench", "/nonexistent/place"], 1, &["/nonexistent/place", "mkdir"]),
        (&["bench", file], 1, &[file, "not a directory"]),
        (&["bench", "/proc", "--modes", "wal"], 1, &["cannot write in /proc", "another directory"]),
        (&["bench", here, "--modes", "walrus"], 2, &["walrus", "truncate"]),
        (&["bench", here, "--runs", "0"], 2, &["--runs"]),
        (&["bench", here, "--transactions", "many"], 2, &["many"]),
        (&["bench", here, "--waldio-option", "persist"], 2, &["NAME=VALUE"]),
        (&["bench", here, "--builds", "mine"], 2, &["mine", "--sqlite"]),
        (
            &["bench", here, "--modes", "wal", "--sqlite", "/nonexistent.so"],
            1,
            &["/nonexistent.so", "--sqlite FILE.so"],
        ),
        (&["bench", here, "--modes", "wal", "--sqlite", "libc.so.6"], 1, &["sqlite3_open_v2", "no SQLite"]),
        (&["bench", here, "--waldio", "/nonexistent.so"], 1, &["/nonexistent.so", "right path"]),
        (&["bench", here, "--waldio", "libc.so.6"], 1, &["waldio"]),
        (
            &["bench", here, "--modes", "wal", "--workloads", "open", "--log", "steady"],
            2,
            &["no row to measure"],
        ),
        (&["bench", here, "--modes", "wal", "--json", "/nonexistent/x.json"], 1, &["/nonexistent/x.json"]),
        (&["compare", file, file], 1, &[file, "not a whole result file"]),
        (&["compare", newer, newer], 1, &["version 99", "newer joj"]),
        (&["compare", file, file, "--fail-below", "1.5"], 2, &["1.5", "like 0.95"]),
        (&["compare", "/nonexistent.json", file], 1, &["/nonexistent.json", "joj bench --json"]),
        (&["frobnicate"], 2, &["frobnicate"]),
        (&["bench", here, "--flush-delay", "2ms"], 2, &["--flush-delay", "--threads"]),
        (&["bench", here, "--seconds", "2"], 2, &["--seconds", "--threads"]),
        (&["trace"], 2, &["nothing to trace", "--pid"]),
        (&["lab", "crash", "--modes", "memory"], 2, &["--modes", "waldio"]),
        (&["bench-worker"], 1, &["joj's own use"]),
    ];
    for (arguments, code, parts) in cases {
        let output = run(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{arguments:?} should say `{part}`: {message}");
        }
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    }
    assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
}

#[test]
fn a_result_that_nobody_could_read_is_not_begun() {
    let place = directory("closed");
    let joj = env!("CARGO_BIN_EXE_joj");
    for arguments in ["compare a.json b.json", "bench --json -", "trace --json - -- true", "device list"] {
        let mut shell = Command::new("sh");
        let output =
            shell.args(["-c", &format!("{joj} {arguments} >&-")]).current_dir(&place).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {message}");
        assert!(message.contains("standard output is closed"), "{arguments}: {message}");
    }
    assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind");
}

#[test]
fn ctrl_c_leaves_no_file_and_no_process() {
    for signal in ["INT", "TERM"] {
        let place = directory(&format!("signal-{signal}"));
        let here = place.to_str().unwrap();
        let mut child =
            joj(&["bench", here, "--modes", "delete", "--transactions", "1000000", "--builds", "bundled"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
        let began = Instant::now();
        let is_running = |place: &Path| {
            entries(place).iter().any(|work| fs::read_dir(work).is_ok_and(|files| files.count() > 1))
        };
        while !is_running(&place) && began.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(20));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "after SIG{signal}");
        assert_eq!(entries(&place), Vec::<PathBuf>::new(), "files left behind after SIG{signal}");
    }
}

#[test]
fn what_a_killed_run_left_goes_with_the_next() {
    let place = directory("killed");
    let here = place.to_str().unwrap();
    let endless = ["bench", here, "--modes", "delete", "--transactions", "1000000", "--builds", "bundled"];
    let mut child = joj(&endless).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while entries(&place).len() < 2 && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What a user calls so is the user's.
    let own = place.join("joj-bench-2026-11");
    fs::create_dir(&own).unwrap();
    assert_eq!(entries(&place).len(), 3, "the killed run's directory and its lock are there");
    let output = run(&["replay", "launch-twitter", here]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(entries(&place), [own]);
}

#[test]
fn help_shows_examples() {
    for (arguments, part) in [
        (vec!["bench", "--help"], "joj bench /mnt/card --quick"),
        (vec!["compare", "--help"], "joj compare before.json"),
    ] {
        let output = run(&arguments);
        assert!(output.status.success() && text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
}
