//! Samples while they are taken: a line each, or on a terminal a table that stays where it is.

use joj_analysis::monitor::quantity::QuantityKind;
use joj_analysis::monitor::sample::{CounterSample, Item};

use crate::show::paper::columns;
use crate::show::text::{number, or_dash};

/// Things of a kind that the table on a terminal has room for.
const THINGS_MAX: usize = 5;
/// Letters of a name that it has room for.
const NAME_LETTERS: usize = 24;

/// Names of what [`line()`] shows.
pub const HEADING: &str = "    time    cpu %  busiest disk        busy %   write KiB/s   flushes/s";

/// One sample as one line of six columns: when, the processors, and the busiest disk.
pub fn line(sample: &CounterSample, at_s: f64) -> String {
    let cpu = sample.items.iter().find(|item| item.kind == QuantityKind::Cpu);
    let busiest = most(sample, QuantityKind::Disk, "busy").into_iter().next();
    let disk = |quantity: &str| busiest.and_then(|item| item.value(quantity));
    let name: String =
        busiest.map_or("-", |item| item.name.as_str()).chars().take(NAME_LETTERS - 6).collect();
    format!(
        "{at_s:8.2} {:>8}  {name:<18} {:>7} {:>13} {:>11}",
        or_dash(cpu.and_then(|item| item.value("active")), share),
        or_dash(disk("busy"), share),
        or_dash(disk("written"), number),
        or_dash(disk("flushes"), number),
    )
}

/// Names of what [`wide_line()`] shows.
pub const WIDE_HEADING: &str = "    time  active%   idle% iowait%  avail MiB dirty MiB wback MiB  busiest disk    busy%     r/s     w/s     f/s \
                           read KiB/s write KiB/s   queue  rx KiB/s  tx KiB/s     irq/s  switch/s";

/// One sample as one line, for a wide terminal. Of the disks it shows the busiest, of the network all interfaces but `lo`.
pub fn wide_line(sample: &CounterSample, at_s: f64) -> String {
    let of = |kind: QuantityKind, quantity: &str| {
        let item = sample.items.iter().find(|item| item.kind == kind);
        item.and_then(|item| item.value(quantity))
    };
    let mib = |quantity: &str| or_dash(of(QuantityKind::Memory, quantity).map(|kib| kib / 1_024.0), number);
    let cpu = |quantity: &str| or_dash(of(QuantityKind::Cpu, quantity), share);
    let busiest = most(sample, QuantityKind::Disk, "busy").into_iter().next();
    let disk = |quantity: &str| or_dash(busiest.and_then(|item| item.value(quantity)), number);
    let network = |quantity: &str| {
        let items =
            sample.items.iter().filter(|item| item.kind == QuantityKind::Network && item.name != "lo");
        let all: Vec<f64> = items.filter_map(|item| item.value(quantity)).collect();
        or_dash((!all.is_empty()).then(|| all.iter().sum()), number)
    };
    format!(
        "{at_s:8.2} {:>8} {:>7} {:>7} {:>10} {:>9} {:>9}  {:<14} {:>6} {:>7} {:>7} {:>7} {:>10} {:>11} {:>7} {:>9} {:>9} {:>9} {:>9}",
        cpu("active"),
        cpu("idle"),
        cpu("iowait"),
        mib("available"),
        mib("dirty"),
        mib("writeback"),
        busiest.map_or("-", |item| item.name.as_str()),
        or_dash(busiest.and_then(|item| item.value("busy")), share),
        disk("reads"),
        disk("writes"),
        disk("flushes"),
        disk("read"),
        disk("written"),
        disk("queue"),
        network("rx"),
        network("tx"),
        or_dash(of(QuantityKind::System, "interrupts"), number),
        or_dash(of(QuantityKind::System, "context_switches"), number),
    )
}

/// The table: about 20 lines that together say what one sample says.
pub fn table(sample: &CounterSample, progress: &str) -> String {
    let of = |kind: QuantityKind, quantity: &str| {
        let item = sample.items.iter().find(|item| item.kind == kind);
        item.and_then(|item| item.value(quantity))
    };
    let cpu = ["active", "idle", "iowait", "steal"]
        .map(|name| format!("{name} {} %", or_dash(of(QuantityKind::Cpu, name), share)));
    let memory = ["free", "available", "cached", "dirty", "writeback"].map(|name| {
        let mib = of(QuantityKind::Memory, name).map(|kib| kib / 1_024.0);
        format!("{name} {}", or_dash(mib, number))
    });
    let system = ["interrupts", "context_switches", "forks"].map(|name| {
        format!("{} {}", name.replace('_', " "), or_dash(of(QuantityKind::System, name), number))
    });
    let mut text = format!(
        "{progress}\ncpu       {}\nmemory    {} MiB\nper s     {}\n\n",
        cpu.join(", "),
        memory.join(", "),
        system.join(", ")
    );
    let disk = ["busy", "queue", "reads", "writes", "flushes", "discards", "read", "written", "discarded"];
    let titles = ["busy %", "queue", "r/s", "w/s", "f/s", "d/s", "r KiB/s", "w KiB/s", "d KiB/s"];
    text.push_str(&things(sample, QuantityKind::Disk, &disk, &titles));
    let network = ["rx", "rx_packets", "rx_dropped", "tx", "tx_packets", "tx_dropped"];
    let titles = ["rx KiB/s", "packets", "dropped", "tx KiB/s", "packets", "dropped"];
    text.push_str(&things(sample, QuantityKind::Network, &network, &titles));
    text.push_str(&things(sample, QuantityKind::Interrupt, &["interrupts"], &["per s"]));
    text
}

/// The things of a kind that do most now, and how many more do anything.
fn things(sample: &CounterSample, kind: QuantityKind, quantities: &[&str], titles: &[&str]) -> String {
    let mut found = most(sample, kind, quantities[0]);
    found.retain(|item| item.has_traffic());
    let title = match found.len().checked_sub(THINGS_MAX) {
        Some(more @ 1..) => format!("{} (and {more} more)", kind.word()),
        _ => kind.word().to_owned(),
    };
    let mut lines = vec![[title].into_iter().chain(titles.iter().map(|title| (*title).to_owned())).collect()];
    for item in found.into_iter().take(THINGS_MAX) {
        let name: String = item.name.chars().take(NAME_LETTERS).collect();
        let values = quantities.iter().map(|quantity| or_dash(item.value(quantity), number));
        lines.push([name].into_iter().chain(values).collect::<Vec<String>>());
    }
    columns(&lines) + "\n"
}

/// The things of a kind, those with most of `quantity` first.
fn most<'a>(sample: &'a CounterSample, kind: QuantityKind, quantity: &str) -> Vec<&'a Item> {
    let mut found: Vec<&Item> = sample.items.iter().filter(|item| item.kind == kind).collect();
    let value = |item: &Item| item.value(quantity).unwrap_or(0.0);
    found.sort_by(|one, other| value(other).total_cmp(&value(one)));
    found
}

/// Per cent with one digit behind the point.
fn share(percent: f64) -> String {
    format!("{percent:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> CounterSample {
        let item = |kind: QuantityKind, name: &str, value: f64| {
            let values = vec![value; kind.quantities().len()];
            Item { kind, name: name.to_owned(), values }
        };
        let mut items = vec![item(QuantityKind::Cpu, "", 25.0), item(QuantityKind::Memory, "", 2_048.0)];
        items.extend((0..7).map(|index| item(QuantityKind::Disk, &format!("sd{index}"), f64::from(index))));
        items.extend(["lo", "eth0", "eth1"].map(|name| item(QuantityKind::Network, name, 5.0)));
        CounterSample { at_ns: 1, span_ns: 1, items }
    }

    #[test]
    fn a_line_has_six_columns_in_80_letters() {
        let text = line(&sample(), 3.0);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words, ["3.00", "25.0", "sd6", "6.0", "6.00", "6.00"]);
        assert_eq!(HEADING.chars().count(), text.chars().count());
        assert!(text.chars().count() <= 80, "{text}");
    }

    #[test]
    fn a_wide_line_shows_the_busiest_disk_and_all_the_network() {
        let text = wide_line(&sample(), 3.0);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..9], ["3.00", "25.0", "25.0", "25.0", "2.00", "2.00", "2.00", "sd6", "6.0"]);
        assert_eq!(words[15..], ["10.0", "10.0", "-", "-"]);
        assert_eq!(WIDE_HEADING.chars().count(), text.chars().count());
    }

    #[test]
    fn the_table_fits_a_terminal_and_says_what_it_left_out() {
        let text = table(&sample(), "2 s");
        assert!(text.contains("disk (and 1 more)"), "{text}");
        assert!(!text.contains("sd0"), "it does nothing: {text}");
        assert!(text.lines().count() <= 24, "{text}");
    }
}
