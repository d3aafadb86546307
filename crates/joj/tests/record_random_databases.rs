//! Goal: whatever a program does with SQLite and waldio, a recording has as many commits as it made, or says how many it may be off.
//! Method: a program in Python takes random steps on its databases (record/random_databases.py): in rollback modes, with logs in both of
//! waldio's layouts, converted, vacuumed, closed and opened, by several connections and processes. It knows how many commits it made. It is
//! recorded from its begin, from its midst, and as strace's text. `SEEDS=100-120` tries other seeds.

mod record;
mod replay;
mod waldio;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use joj_analysis::recording::Recording;
use joj_analysis::recording::import::strace;
use joj_analysis::recording::page_transactions::derive::{DeriveError, derive};
use record::{calls, methods, record_command};
use replay::{Scratch, told};

const PROGRAM: &str = include_str!("record/random_databases.py");

/// How many commits there may be, as a recording says it.
struct Counted {
    least: u64,
    most: u64,
    said: String,
}

impl Counted {
    fn of(recording: &Recording) -> Self {
        let found = match derive(recording) {
            Ok(found) => found,
            Err(DeriveError::NoCommit) => return Self { least: 0, most: 0, said: "no commit".to_owned() },
            Err(DeriveError::NotShown(most)) => {
                return Self { least: 0, most, said: "no commit told".to_owned() };
            }
            Err(DeriveError::NoBounds(path)) => return Self { least: 0, most: u64::MAX, said: path },
        };
        let count = found.commits.len() as u64;
        let mut counted = Self { least: count, most: count, said: format!("{count}, {:?}", found.notes) };
        for note in &found.notes {
            let number = note.rsplit_once(": ").and_then(|(_, number)| number.parse::<u64>().ok());
            match number {
                Some(number) if note.contains("too many") => counted.least -= number,
                Some(number) => counted.most += number,
                None => {}
            }
        }
        counted
    }
}

/// A program, and where it works.
struct Program<'a> {
    scratch: &'a Scratch,
    seed: u32,
    library: &'a Path,
    /// What it does, and how it ends.
    kind: &'static str,
    ending: &'static str,
}

impl Program<'_> {
    /// The words that run it, with databases of their own.
    fn words(&self, place: &str, pause: &str) -> Vec<OsString> {
        let place = self.scratch.file(&format!("{}-{place}", self.seed));
        std::fs::create_dir(&place).expect("a directory");
        let script = self.scratch.write("program.py", PROGRAM);
        let number = self.seed.to_string();
        let kind = format!("{}{pause}", self.kind);
        let words = [&"/usr/bin/python3" as &dyn AsRef<std::ffi::OsStr>, &script, &place, &self.library];
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        words.chain([number, self.ending.to_owned(), kind].map(OsString::from)).collect()
    }

    /// From its begin.
    fn recorded(&self, method: &str) -> (u64, Recording) {
        let recording = self.scratch.file("whole.joj");
        let words = self.words(method, "");
        let words: Vec<&dyn AsRef<std::ffi::OsStr>> = words.iter().map(|word| word as _).collect();
        let output = record_command(method, &recording, &words);
        (number_in(&mut &*output.stdout), calls(&recording))
    }

    /// From its midst: between two transactions, or inside of one.
    fn recorded_from_its_midst(&self) -> (u64, Recording) {
        let recording = self.scratch.file("part.joj");
        let pause = if self.seed.is_multiple_of(2) { " pause" } else { " transaction" };
        let words = self.words("part", pause);
        let mut program = Command::new(&words[0]);
        let program = program.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program: Child = program.spawn().expect("python3");
        let mut said = BufReader::new(program.stdout.take().expect("a pipe"));
        let before = number_in(&mut said);
        let waits = waits_of(program.id());
        let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
        joj.args(["record", "--method", "ptrace", "--pid", &program.id().to_string(), "-o"]).arg(&recording);
        let mut joj = joj.stderr(Stdio::piped()).spawn().expect("joj");
        // It waits for its line, stops for the tracer, which reads what it has open, and waits again.
        while waits_of(program.id()) < waits + 2 && joj.try_wait().expect("joj").is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        program.stdin.take().expect("a pipe").write_all(b"\n").expect("it waits");
        let all = number_in(&mut said);
        program.wait().expect("python3");
        let (code, said) = told(&joj.wait_with_output().expect("joj"));
        assert_eq!(code, Some(0), "{said}");
        (all - before, calls(&recording))
    }

    /// As strace's text.
    fn in_text(&self) -> Option<(u64, Recording)> {
        let text = self.scratch.file("it.strace");
        let mut command = Command::new("strace");
        command.args(["-f", "-ttt", "-T", "-y", "-o"]).arg(&text).args(self.words("strace", ""));
        let output = command.output().ok()?;
        let text = BufReader::new(File::open(text).ok()?);
        let recording = strace::import(text).expect("a recording");
        Some((number_in(&mut &*output.stdout), recording))
    }
}

/// Whether Python's SQLite loads extensions.
fn has_python() -> bool {
    let asks = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)";
    let asked = Command::new("/usr/bin/python3").args(["-c", asks]).output();
    let has = asked.is_ok_and(|output| output.status.success());
    if !has {
        waldio::skipped("no Python with SQLite that loads extensions");
    }
    has
}

/// How often a process waited until now.
fn waits_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a status");
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    waits.and_then(|waits| waits.trim().parse().ok()).expect("a number")
}

/// The number in the next line that the program prints.
fn number_in(said: &mut impl BufRead) -> u64 {
    let mut line = String::new();
    said.read_line(&mut line).expect("text");
    let number = line.split_whitespace().last().and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no number of commits: {line}"))
}

#[test]
fn random_programs_have_the_commits_that_they_made() {
    let Some(extension) = waldio::extension().filter(|_| has_python()) else { return };
    let words = std::env::var("SEEDS").unwrap_or_else(|_| "1-2".to_owned());
    let (first, last) = words.split_once('-').expect("first-last");
    let [first, last] = [first, last].map(|seed| seed.parse::<u32>().expect("a number"));
    let scratch = Scratch::new("random-databases");
    let mut wrong = Vec::new();
    for seed in first..=last {
        let kind = ["alone", "attach", "process", "attach process"][seed as usize % 4];
        let ending = ["close", "exit", "kill"][seed as usize % 3];
        let program = Program { scratch: &scratch, seed, library: &extension, kind, ending };
        let method = methods()[seed as usize % methods().len()];
        let mut cases = vec![(method, program.recorded(method))];
        cases.push(("from its midst", program.recorded_from_its_midst()));
        cases.extend(program.in_text().map(|text| ("strace", text)));
        for (how, (truth, recording)) in cases {
            let found = Counted::of(&recording);
            let case = format!("{seed} {kind} {ending}, {how}: {truth} commits, found {}", found.said);
            println!("{case}");
            if !(found.least..=found.most).contains(&truth) {
                wrong.push(case);
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
