//! `joj monitor` from its options to its exit code.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::bench::environment::iso_8601;
use joj_analysis::monitor::document::{Conditions, EndReason, MonitorDocument, MonitorEnding, OwnCost};
use joj_analysis::monitor::reading::Reading;
use joj_analysis::monitor::sample::CounterSample;
use joj_analysis::monitor::table::Table;
use thiserror::Error;

use crate::command_line::monitor::MonitorOptions;
use crate::machine::files::output_file::{OutputError, check_writable, print, write};
use crate::machine::proc::clock::calendar_seconds;
use crate::machine::proc::proc_files::{ProcFileError, ProcFiles};
use crate::machine::proc::signal;
use crate::machine::proc::usage::Usage;
use crate::machine::proc::watched_command::{WatchedCommand, wait_until};
use crate::show::monitor::csv as monitor_csv;
use crate::show::monitor::lines as monitor_lines;
use crate::show::monitor::page;
use crate::show::monitor::summary;
use crate::show::paper::Paper;

/// Past that many samples the table, some hundred bytes a sample, is no longer small beside what is measured.
const SAMPLES_MAX: usize = 1_000_000;
/// Lines between two headings on a terminal.
const LINES_PER_HEADING: usize = 20;
/// Below this many ticks in an interval a share of CPU time has fewer than two digits.
const TICKS_PER_INTERVAL: u64 = 10;
const NS_PER_MS: u64 = 1_000_000;

/// Why nothing was monitored.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// /proc cannot be read.
    #[error(transparent)]
    Proc(#[from] ProcFileError),
    /// `--device` names no disk.
    #[error("there is no disk `{disk}`; --device takes one of: {known}")]
    NoDisk {
        /// What it names.
        disk: String,
        /// The disks that there are.
        known: String,
    },
    /// Ctrl-C would end joj without a result.
    #[error("cannot catch Ctrl-C: {0}")]
    Signals(#[source] io::Error),
    /// The result cannot be written as JSON: a fault of joj's.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The result cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj monitor`.
/// # Errors
/// What could not be done, where, and how to mend it.
pub fn run(options: &MonitorOptions) -> Result<ExitCode, MonitorError> {
    check_writable([&options.json, &options.html, &options.csv].into_iter().flatten())?;
    let (mut files, mut warnings) = ProcFiles::open(&options.proc)?;
    let first = files.read()?;
    let mut table = Table::new(chosen_disks(&options.device, &first)?);
    signal::install().map_err(MonitorError::Signals)?;
    let conditions = conditions(options);
    if conditions.every_ms * conditions.ticks_per_s < TICKS_PER_INTERVAL * 1_000 {
        let tick_ms = 1_000 / conditions.ticks_per_s.max(1);
        warnings.push(format!(
            "the kernel counts CPU time in ticks of {tick_ms} ms, so an interval of {} ms has a coarse share of it; \
             the mean is exact",
            conditions.every_ms
        ));
    }
    let mut screen = Screen::new(options);
    let used_before = Usage::now();
    let first = files.read()?;
    let began_ns = first.at_ns;
    let mut command = match options.command.as_slice() {
        [] => None,
        words => match WatchedCommand::start(words, is_stdout_taken(options)) {
            Ok(command) => Some(command),
            Err(error) => {
                eprintln!("joj: {error}");
                return Ok(ExitCode::from(error.exit_code()));
            }
        },
    };
    let mut ending = sample(options, &mut files, first, &mut table, &mut command, &mut screen);
    let used = Usage::now().since(&used_before);
    let elapsed_ns = crate::machine::proc::clock::shared_ns() - began_ns;
    screen.clear();
    if let Some(command) = &mut command {
        if ending.reason != EndReason::Command && !signal::is_stopped() {
            eprintln!("joj: no more samples; waiting for {} to end", options.command[0]);
        }
        ending.exit_code = Some(command.wait());
    }
    let own_cost = OwnCost::of(used.cpu_user_us + used.cpu_system_us, elapsed_ns);
    report(options, &MonitorDocument::new(&table, conditions, ending, own_cost, warnings), &mut screen)
}

/// Kernel names of what `--device` named.
fn chosen_disks(devices: &[String], first: &Reading) -> Result<Vec<String>, MonitorError> {
    let name_of = |device: &String| {
        // /dev/mapper and /dev/disk hold links to what the kernel calls by another name.
        let path = fs::canonicalize(device).ok().filter(|_| device.contains('/'));
        let path = path.unwrap_or_else(|| device.into());
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = devices.iter().map(name_of).collect();
    let is_known = |name: &String| first.disks.iter().any(|disk| disk.name == *name);
    if let Some(index) = names.iter().position(|name| !is_known(name)) {
        let known: Vec<&str> = first.disks.iter().map(|disk| disk.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(MonitorError::NoDisk { disk: devices[index].clone(), known });
    }
    Ok(names)
}

fn conditions(options: &MonitorOptions) -> Conditions {
    let kernel = fs::read_to_string(options.proc.join("sys/kernel/osrelease")).unwrap_or_default();
    Conditions {
        joj_version: env!("CARGO_PKG_VERSION").to_owned(),
        joj_commit: env!("JOJ_COMMIT").to_owned(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_at: iso_8601(calendar_seconds()),
        kernel: kernel.trim().to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        ticks_per_s: rustix::param::clock_ticks_per_second(),
        every_ms: options.every,
        for_ms: options.for_ms,
        command: options.command.clone(),
    }
}

/// Samples until something ends it.
fn sample(
    options: &MonitorOptions,
    files: &mut ProcFiles,
    first: Reading,
    table: &mut Table,
    command: &mut Option<WatchedCommand>,
    screen: &mut Screen,
) -> MonitorEnding {
    let mut ending =
        MonitorEnding { reason: EndReason::Error, error: None, exit_code: None, late_intervals: 0 };
    let began_ns = first.at_ns;
    let every_ns = options.every * NS_PER_MS;
    let end_ns = options.for_ms.map_or(u64::MAX, |for_ms| began_ns + for_ms * NS_PER_MS);
    let mut last = first;
    // Intervals are counted from the beginning: a late sample does not make the next ones late.
    let mut interval = 1;
    loop {
        wait_until((began_ns + interval * every_ns).min(end_ns), command);
        // Looked at before the reading, so that the reading has all that was done until then.
        let has_ended = command.as_mut().is_some_and(|command| command.exit_code().is_some());
        let is_stopped = signal::is_stopped();
        let now = match files.read() {
            Ok(now) => now,
            Err(error) => {
                ending.error = Some(error.to_string());
                return ending;
            }
        };
        let mut is_read = true;
        if now.at_ns > last.at_ns {
            let mut sample = CounterSample::between(&last, &now);
            sample.items.retain(|item| table.is_wanted(item));
            table.push(began_ns, &sample);
            is_read = screen.show(&sample, now.at_ns - began_ns, options.for_ms);
        }
        let reason = match () {
            () if has_ended => Some(EndReason::Command),
            () if is_stopped || !is_read => Some(EndReason::Signal),
            () if now.at_ns >= end_ns => Some(EndReason::Time),
            () if table.len() >= SAMPLES_MAX => Some(EndReason::Limit),
            () => None,
        };
        if let Some(reason) = reason {
            return MonitorEnding { reason, ..ending };
        }
        let next = (now.at_ns - began_ns) / every_ns + 1;
        ending.late_intervals += next.saturating_sub(interval + 1);
        interval = next;
        last = now;
    }
}

/// True where standard output is for JSON alone.
fn is_stdout_taken(options: &MonitorOptions) -> bool {
    options.json.as_deref() == Some(Path::new("-"))
}

/// Where samples and summary are shown.
struct Screen {
    out: Box<dyn Write>,
    /// Nothing, a line for each sample, or a table that is drawn over and over.
    is_quiet: bool,
    is_table: bool,
    is_terminal: bool,
    is_wide: bool,
    shown: usize,
    /// Lines of the table on the terminal.
    table_lines: usize,
}

impl Screen {
    fn new(options: &MonitorOptions) -> Screen {
        let is_stdout = options.command.is_empty() && !is_stdout_taken(options);
        let out: Box<dyn Write> = if is_stdout { Box::new(io::stdout()) } else { Box::new(io::stderr()) };
        let is_terminal = if is_stdout { io::stdout().is_terminal() } else { io::stderr().is_terminal() };
        // Beside a program that writes to the terminal itself, a table would be drawn over its lines.
        let is_table = is_terminal && options.command.is_empty();
        Screen {
            out,
            is_quiet: options.quiet,
            is_table,
            is_terminal,
            is_wide: options.wide,
            shown: 0,
            table_lines: 0,
        }
    }

    /// Shows a sample; false where nobody reads any more.
    fn show(&mut self, sample: &CounterSample, at_ns: u64, for_ms: Option<u64>) -> bool {
        if self.is_quiet {
            return true;
        }
        let at_s = at_ns as f64 / 1e9;
        let mut text = String::new();
        if self.is_table {
            let of = for_ms.map_or_else(String::new, |for_ms| format!(" of {}", for_ms as f64 / 1e3));
            let progress = format!("{at_s:.2}{of} s, sample {}; Ctrl-C for the summary", self.shown + 1);
            let table = monitor_lines::table(sample, &progress);
            self.erase_into(&mut text);
            // A line that wraps could not be erased: cut lines at the edge.
            text.push_str(&format!("\x1b[?7l{table}\x1b[?7h"));
            self.table_lines = table.lines().count();
        } else {
            let is_due =
                self.shown == 0 || (self.is_terminal && self.shown.is_multiple_of(LINES_PER_HEADING));
            if is_due {
                text.push_str(if self.is_wide {
                    monitor_lines::WIDE_HEADING
                } else {
                    monitor_lines::HEADING
                });
                text.push('\n');
            }
            let line = if self.is_wide { monitor_lines::wide_line } else { monitor_lines::line };
            text.push_str(&format!("{}\n", line(sample, at_s)));
        }
        self.shown += 1;
        self.print(&text)
    }

    fn erase_into(&mut self, text: &mut String) {
        if self.table_lines > 0 {
            text.push_str(&format!("\x1b[{}A\r\x1b[J", self.table_lines));
            self.table_lines = 0;
        }
    }

    /// Takes the table off the terminal.
    fn clear(&mut self) {
        let mut text = String::new();
        self.erase_into(&mut text);
        self.print(&text);
    }

    /// A closed pipe (`| head`) is the reader's choice, not an error.
    fn print(&mut self, text: &str) -> bool {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_ok()
    }
}

fn report(
    options: &MonitorOptions,
    document: &MonitorDocument,
    screen: &mut Screen,
) -> Result<ExitCode, MonitorError> {
    screen.print(&summary::render(document, &Paper::of_output(options.wide)));
    if let Some(file) = &options.json {
        let json = serde_json::to_string(document)?;
        if is_stdout_taken(options) {
            print(&format!("{json}\n"))?;
        } else {
            write(file, &format!("{json}\n"))?;
        }
    }
    if let Some(file) = &options.csv {
        write(file, &monitor_csv::render(document))?;
    }
    if let Some(file) = &options.html {
        write(file, &page::page(document))?;
    }
    let ending = &document.ending;
    let is_cut_short = ending.reason == EndReason::Signal && options.for_ms.is_some();
    Ok(match ending.exit_code {
        // Its own failure stays visible; a good end does not hide ours.
        Some(code) if code != 0 => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        _ if ending.reason == EndReason::Error => ExitCode::FAILURE,
        None if is_cut_short => ExitCode::from(signal::STOPPED_EXIT_CODE),
        _ => ExitCode::SUCCESS,
    })
}
