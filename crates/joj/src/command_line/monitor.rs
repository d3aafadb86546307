//! The command line of `joj monitor`.

use std::path::PathBuf;

use clap::Args;

use crate::command_line::page_file;

/// Behind the options in `joj monitor --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj monitor                                    a line each second until Ctrl-C, then the summary
  joj monitor -- ./insert.sh                     while a program runs; joj ends with its exit code
  joj monitor --for 60s --every 100ms --html load.html
  joj monitor --device vda --device vdb -q -- fio job.fio
  joj monitor --json - --for 10s | jq '.quantities[] | {name, quantity, summary}'
  joj monitor --csv load.csv --every 10ms -- sqlite3 app.db 'INSERT INTO t VALUES(1)'

What it samples, all processors and each device by itself: CPU time (active, idle, waiting for I/O, stolen by the host; per cent
and ticks), memory (free, available, page cache, dirty, being written), disks (share of the time busy, requests queued on
average, reads, writes, discards and flushes per second with their KiB and waits), network (received and sent), interrupts
by device, context switches. Means are over all the time, p50, p99 and max over the intervals.

Nothing is written while it samples: FILEs are written at the end, so that joj does not disturb the disk that it watches.
It keeps 1,000,000 samples at most. Below 100 ms shares of CPU time are coarse: the kernel counts ticks of 10 ms.

The lines and the summary go to standard output, with a COMMAND or `--json -` to standard error. With `--json -` the COMMAND's
standard output goes there too. After Ctrl-C the COMMAND has a second to end, then it gets SIGTERM, 5 s later SIGKILL.
The exit code is the COMMAND's (128 and the signal's number where one ended it, 127 and 126 where it could not be started);
without a COMMAND 0, or 130 where Ctrl-C came before the end of `--for`; 1 where the machine's figures could not be read.";

/// Options of `joj monitor`.
#[derive(Debug, Args)]
pub struct MonitorOptions {
    /// Time between samples, 10ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_every)]
    pub every: u64,

    /// How long to sample, for example 60s or 10m [default: until the COMMAND ends, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    pub for_ms: Option<u64>,

    /// Only these disks, with traffic or without; may be repeated [default: all with traffic]
    #[arg(long, value_name = "DISK")]
    pub device: Vec<String>,

    /// Lines of 19 columns, 200 letters wide: memory, network, queues, interrupts too
    #[arg(long)]
    pub wide: bool,

    /// Write everything as JSON (docs/monitor_format.md); `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write one HTML page with plots
    #[arg(long, value_name = "FILE", value_parser = page_file())]
    pub html: Option<PathBuf>,

    /// Write a row for each sample, with a column for each quantity
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// No line for each sample, only the summary
    #[arg(long, short)]
    pub quiet: bool,

    /// Read this directory instead of /proc, for example a container's /host/proc
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    pub proc: PathBuf,

    /// A program to run and to watch until it ends
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Milliseconds of a time like `500ms`, `1s`, `1.5s`, `10m`, `2h`.
fn parse_time(text: &str) -> Result<u64, String> {
    let units = [("ms", 1.0), ("s", 1e3), ("m", 60e3), ("h", 3600e3)];
    let of_unit = |(unit, ms): (&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        let is_plain = text.starts_with(|letter: char| letter.is_ascii_digit());
        is_plain.then_some(number * ms)
    };
    let found = units.into_iter().find_map(of_unit).filter(|ms| (10.0..=365.0 * 24.0 * 3600e3).contains(ms));
    // Whole milliseconds print without a point: that is their conversion.
    found
        .and_then(|ms| format!("{ms:.0}").parse().ok())
        .ok_or_else(|| format!("`{text}` is no time of 10ms or more; write it like 500ms, 60s, 10m or 2h"))
}

fn parse_every(text: &str) -> Result<u64, String> {
    let within = |ms: &u64| (10..=60_000).contains(ms);
    let error = || format!("`{text}` is no time from 10ms to 60s; write it like 100ms or 1s");
    parse_time(text).ok().filter(within).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_bounds() {
        let times = ["10ms", "1s", "1.5s", "10m", "2h"].map(parse_time);
        assert_eq!(times, [10, 1_000, 1_500, 600_000, 7_200_000].map(Ok));
        for wrong in ["", "1", "s", "-1s", "9ms", "1e3x", "nans", "infs", "99999999h", "+1s", "1 d"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [parse_every("10ms"), parse_every("60s"), parse_every("1m")],
            [10, 60_000, 60_000].map(Ok)
        );
        assert!(parse_every("61s").is_err() && parse_every("5ms").is_err());
    }
}
