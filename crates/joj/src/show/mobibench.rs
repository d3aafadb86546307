//! Mobibench's lines on standard output and in its files (`-L`, `-k`), for the programs that read them.
//!
//! Source: what Mobibench 1.0.8 prints, its misspellings too (ESOS-Lab/Mobibench, shell/mobibench.c).

use std::fmt::Write;

use joj_analysis::mobibench::document::{MobibenchResult, SqliteFacts};
use joj_analysis::mobibench::setup::{FileWork, MobibenchSetup, MobibenchWork};

const RULE: &str = "-----------------------------------------";
const NS_PER_S: u64 = 1_000_000_000;

/// A heading between two rules.
fn heading(title: &str) -> String {
    format!("{RULE}\n{title}\n{RULE}\n")
}

/// What is printed before the test.
pub fn setup(setup: &MobibenchSetup) -> String {
    let work = match &setup.work {
        MobibenchWork::Files(work) => format!(
            "File size per thread : {} KB\nIO size : {} KB\nIO count : {} \nAccess Mode {}, Sync Mode {}\n",
            work.file_kb,
            work.record_kb,
            work.records(),
            work.access.number(),
            work.sync.number()
        ),
        MobibenchWork::Databases(work) => {
            let pause = match work.pause_ms {
                0 => String::new(),
                pause_ms => format!("DB time interval : {pause_ms} ms\n"),
            };
            format!(
                "DB teset mode enabled.\n{pause}Operation : {}\nTransactions per thread: {}\n# of Tables : {}\n\
                 # of Databases : {}\n",
                work.operation.number(),
                work.transactions,
                work.tables,
                work.databases
            )
        }
    };
    format!("{}{work}# of Threads : {}\n", heading("[mobibench measurement setup]"), setup.threads)
}

/// What SQLite says of itself and of the databases.
pub fn databases(facts: &SqliteFacts) -> String {
    let lines = facts.databases.iter().map(|database| {
        format!(
            "{}sqlite_version={}\npage_size={}\njournal_mode={}\nsynchronous={}\n",
            heading(&format!("[DB information of db {}]", database.file)),
            facts.version,
            database.page_size,
            database.journal_mode,
            database.synchronous
        )
    });
    lines.collect()
}

/// The figures.
pub fn result(setup: &MobibenchSetup, result: &MobibenchResult, elapsed_ns: u64) -> String {
    let [active, idle, iowait] =
        result.cpu_percent.map_or([0.0; 3], |shares| [shares.active, shares.idle, shares.iowait]);
    let switches = match result.context_switches {
        Some(switches) => format!("[CON SWITCHES] : {} {}\n", switches.total, switches.voluntary),
        None => String::new(),
    };
    format!(
        "{}[CPU] : Active,Idle,IoWait : {active:.2} {idle:.2} {iowait:.2}\n{}\n{switches}",
        heading("[Messurement Result]"),
        time(setup, result, elapsed_ns)
    )
}

/// `[TIME] :` and the rates, without a line's end.
fn time(setup: &MobibenchSetup, result: &MobibenchResult, elapsed_ns: u64) -> String {
    let (seconds, microseconds) = (elapsed_ns / NS_PER_S, elapsed_ns % NS_PER_S / 1_000);
    let time = format!("[TIME] :{seconds:8} sec {microseconds:06}us. \t");
    match &setup.work {
        MobibenchWork::Databases(_) => format!("{time}{:.2} Transactions/sec", result.operations_per_s),
        MobibenchWork::Files(work) => {
            let rate = result.bytes_per_s.unwrap_or(0.0);
            let (kb, mb) = (rate / 1024.0, rate / 1024.0 / 1024.0);
            let rates = format!("{rate:.0} B/sec, \t{kb:.2} KB/sec, \t{mb:.2} MB/sec.");
            let iops = match work.access.is_random() {
                true => format!(" {:.2} IOPS({}KB) ", result.operations_per_s, work.record_kb),
                false => String::new(),
            };
            format!("{time}{rates}{iops}")
        }
    }
}

/// What comes before the lines of each thread in both files.
fn file_heading(work: &MobibenchWork) -> String {
    match work {
        MobibenchWork::Files(work) => {
            format!("\n#In {} IO mode and {} sync mode\n", work.access.number(), work.sync.number())
        }
        MobibenchWork::Databases(work) => {
            format!("\n#In {} DB mode and {} synchronous\n", work.operation.number(), work.synchronous)
        }
    }
}

/// The lines of `-L`: what each operation took, and the figures.
pub fn latency_lines(
    setup: &MobibenchSetup,
    latencies_ns: &[Vec<u64>],
    result: &MobibenchResult,
    elapsed_ns: u64,
) -> String {
    let mut text = String::new();
    for of_thread in latencies_ns {
        text.push_str(&file_heading(&setup.work));
        for latency_ns in of_thread {
            let _ = writeln!(text, "{}\tusec", latency_ns / 1_000);
        }
    }
    // Without a line's end, as there: the next heading begins with one.
    text + &time(setup, result, elapsed_ns)
}

/// The lines of `-k`: what each second of a thread did, the last one, which is none, left out.
pub fn second_lines(setup: &MobibenchSetup, work: &FileWork, latencies_ns: &[Vec<u64>]) -> String {
    let mut text = String::new();
    for of_thread in latencies_ns {
        text.push_str(&file_heading(&setup.work));
        let (mut operations, mut passed_ns) = (0_u64, 0_u64);
        for latency_ns in of_thread {
            operations += 1;
            passed_ns += latency_ns;
            if passed_ns > NS_PER_S {
                let per_s = operations as f64 * NS_PER_S as f64 / passed_ns as f64;
                let _ = match work.access.is_random() {
                    true => writeln!(text, "{per_s:.0} IOPS"),
                    false => writeln!(text, "{:.0} KB/s", per_s * work.record_kb as f64),
                };
                (operations, passed_ns) = (0, 0);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use joj_analysis::mobibench::document::{CpuShares, LatencyUs};
    use joj_analysis::mobibench::setup::{FileAccess, FileSync};

    use super::*;

    fn setup_of(access: FileAccess) -> (MobibenchSetup, FileWork) {
        let work = FileWork { file_kb: 64, record_kb: 4, access, sync: FileSync::Fsync, repeat_percent: 0 };
        let files = MobibenchWork::Files(work.clone());
        (MobibenchSetup { directory: "d".into(), threads: 1, work: files }, work)
    }

    fn figures() -> MobibenchResult {
        MobibenchResult {
            elapsed_s: 2.5,
            operations: 16,
            operations_per_s: 6.4,
            bytes: Some(65_536),
            bytes_per_s: Some(26_214.4),
            cpu_percent: Some(CpuShares { active: 1.234, idle: 90.0, iowait: 8.766 }),
            context_switches: None,
            latency_us: LatencyUs { p50: 1.0, p99: 1.0, max: 1.0 },
            syncs: None,
        }
    }

    #[test]
    fn lines_have_the_form_of_mobibench() {
        let (setup, _) = setup_of(FileAccess::RandomWrite);
        let text = result(&setup, &figures(), 2_500_001_000);
        assert!(text.contains("[CPU] : Active,Idle,IoWait : 1.23 90.00 8.77\n"), "{text}");
        let time =
            "[TIME] :       2 sec 500001us. \t26214 B/sec, \t25.60 KB/sec, \t0.03 MB/sec. 6.40 IOPS(4KB) \n";
        assert!(text.contains(time), "{text}");
        let (setup, _) = setup_of(FileAccess::Write);
        assert!(result(&setup, &figures(), 2_500_000_001).ends_with("0.03 MB/sec.\n"));
    }

    #[test]
    fn a_second_counts_what_it_did() {
        let latencies_ns = vec![vec![250_000_001, 250_000_000, 250_000_000, 250_000_000, 4_000_000_000, 7]];
        let (setup, work) = setup_of(FileAccess::RandomWrite);
        assert_eq!(
            second_lines(&setup, &work, &latencies_ns),
            "\n#In 1 IO mode and 2 sync mode\n4 IOPS\n0 IOPS\n"
        );
        let (setup, work) = setup_of(FileAccess::Append);
        assert_eq!(
            second_lines(&setup, &work, &latencies_ns),
            "\n#In 4 IO mode and 2 sync mode\n16 KB/s\n1 KB/s\n"
        );
    }

    #[test]
    fn latencies_stand_in_front_of_the_figures() {
        let (setup, _) = setup_of(FileAccess::Write);
        let text = latency_lines(&setup, &[vec![1_999, 22_000], vec![3_000]], &figures(), 1);
        let expected = "\n#In 0 IO mode and 2 sync mode\n1\tusec\n22\tusec\n\n#In 0 IO mode and 2 sync mode\n3\tusec\n[TIME]";
        assert!(text.starts_with(expected) && text.ends_with("MB/sec."), "{text}");
    }
}
