//! Goal: what a user has to know of the rows of `joj whatif` is in its notes, where it holds, and not elsewhere.
//! Method: recordings made of text.

mod replay;
mod whatif_made;

use replay::{Scratch, record};
use serde_json::Value;
use whatif_made::{Text, whatif};

/// The notes that have a word.
fn notes_with(result: &Value, word: &str) -> Vec<String> {
    let notes = result["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    notes.filter(|note| note.contains(word)).map(str::to_owned).collect()
}

/// A note says how many closes between commits are left out: in its first words where there are many.
#[test]
fn closes_between_commits_are_told_where_rows_lack_them() {
    let scratch = Scratch::new("whatif-closes");
    for (often, commits, begin, left_out) in [
        (1, 6, "none", ""),
        (
            2,
            6,
            "The rows with commits are too short by that: they leave out",
            " 1 close of a database with 12 commits",
        ),
        (
            6,
            1,
            "The rows with commits are too short, and in truth may be slower",
            " 5 closes of a database with 6 commits",
        ),
    ] {
        let mut text = Text::default();
        for _ in 0..often {
            text.line(r#"open("/d/app.db", O_RDWR|O_CREAT, 0644) = 3"#);
            (1..=commits).for_each(|page| _ = text.commit(page));
            text.line("close(3) = 0");
        }
        let recording = record(&scratch, "app", text.text);
        let told = |only| {
            let result = whatif(&recording, scratch.as_ref(), &["--rounds", "1", "--only", only]);
            assert_eq!(result["lacks_closes"], often == 6, "{only}");
            notes_with(&result, "close")
        };
        let found = told("wal");
        assert_eq!(found.len(), usize::from(often > 1), "{found:?}");
        assert!(found.iter().all(|note| note.starts_with(begin) && note.contains(left_out)), "{found:?}");
        assert_eq!(told("no-sync"), [""; 0], "no row with commits");
    }
}

/// Of 100 ms the second process waits for a lock, for 50 ms or for 2.
#[test]
fn waits_for_locks_are_told_where_they_are_long() {
    let scratch = Scratch::new("whatif-locks");
    for (unlocked_ms, told) in [(70, "Its threads waited 50"), (22, "none")] {
        let line = |process: u32, at_ms: u32, call: &str| {
            format!("{process} 00:00:00.{:06} {call} <0.000010>\n", at_ms * 1000)
        };
        let lock = |kind: &str| {
            format!("fcntl(3, F_SETLK, {{l_type=F_{kind}, l_whence=SEEK_SET, l_start=7, l_len=1}}) = ")
        };
        let open = "open(\"/d/a\", O_RDWR|O_CREAT, 0644) = 3";
        let text = [
            line(1, 1, open),
            line(2, 2, open),
            line(1, 10, &(lock("WRLCK") + "0")),
            line(2, 20, &(lock("WRLCK") + "-1 EAGAIN (Resource temporarily unavailable)")),
            line(1, unlocked_ms, &(lock("UNLCK") + "0")),
            line(2, unlocked_ms + 1, &(lock("WRLCK") + "0")),
            line(2, 100, "fsync(3) = 0"),
        ];
        let recording = record(&scratch, "locks", text.concat());
        let found = notes_with(
            &whatif(&recording, scratch.as_ref(), &["--rounds", "1", "--only", "no-sync"]),
            "locks",
        );
        assert_eq!(found.len(), usize::from(told != "none"), "{unlocked_ms}: {found:?}");
        assert!(found.iter().all(|note| note.starts_with(told)), "{found:?}");
    }
}
