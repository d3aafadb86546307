//! What happened between two readings: a value for each quantity of each thing.

use crate::monitor::counter::grown;
use crate::monitor::proc::stat::Stat;
use crate::monitor::quantity::QuantityKind;
use crate::monitor::reading::Reading;

/// The values of one processor, disk, interface or other source in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub kind: QuantityKind,
    /// Its name; empty for what a machine has one of.
    pub name: String,
    /// A value for each of [`QuantityKind::quantities`]; not a number where there is none.
    pub values: Vec<f64>,
}

/// What the counters say of one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSample {
    /// Its end, by the clock of the readings.
    pub at_ns: u64,
    /// The interval's length.
    pub span_ns: u64,
    /// Everything that was there at both ends.
    pub items: Vec<Item>,
}

impl Item {
    /// The value of a quantity that its kind has, cut at the most that it can be; `None` where there is none now.
    pub fn value(&self, quantity: &str) -> Option<f64> {
        let index = self.kind.index_of(quantity);
        let counted = self.values.get(index).copied().filter(|value| !value.is_nan())?;
        Some(self.kind.quantities()[index].cut(counted))
    }

    /// True where anything was counted.
    pub fn has_traffic(&self) -> bool {
        self.values.iter().any(|value| *value > 0.0)
    }
}

impl CounterSample {
    /// The interval between two readings; `then` must be the earlier.
    pub fn between(then: &Reading, now: &Reading) -> CounterSample {
        assert!(now.at_ns > then.at_ns, "readings at {} and {}", then.at_ns, now.at_ns);
        let span_ns = now.at_ns - then.at_ns;
        let seconds = span_ns as f64 / 1e9;
        let mut items = Vec::with_capacity(now.disks.len() + now.interfaces.len() + 32);
        let mut add = |kind: QuantityKind, name: &str, values: Vec<f64>| {
            items.push(Item { kind, name: name.to_owned(), values });
        };
        if let (Some(then), Some(now)) = (&then.stat, &now.stat) {
            add(QuantityKind::Cpu, "", processors(then, now));
            add(QuantityKind::System, "", system(then, now, seconds));
        }
        if let Some(memory) = &now.memory {
            let all = [
                memory.free_kib,
                memory.available_kib,
                memory.cached_kib,
                memory.dirty_kib,
                memory.writeback_kib,
            ];
            add(QuantityKind::Memory, "", all.map(or_nan).to_vec());
        }
        for (index, disk) in now.disks.iter().enumerate() {
            let old = same_name(&then.disks, index, |other| other.name == disk.name);
            if let Some(values) = old.and_then(|old| disk.since(old, seconds)) {
                add(QuantityKind::Disk, &disk.name, values);
            }
        }
        for (index, interface) in now.interfaces.iter().enumerate() {
            let old = same_name(&then.interfaces, index, |other| other.name == interface.name);
            if let Some(values) = old.and_then(|old| interface.since(old, seconds)) {
                add(QuantityKind::Network, &interface.name, values);
            }
        }
        if let (Some(then), Some(now)) = (&then.interrupts, &now.interrupts) {
            for (name, rate) in now.since(then, seconds) {
                add(QuantityKind::Interrupt, &name, vec![rate]);
            }
        }
        CounterSample { at_ns: now.at_ns, span_ns, items }
    }
}

/// The element that `is_same` accepts; at the same place as a rule, so look there first.
fn same_name<T>(list: &[T], index: usize, is_same: impl Fn(&T) -> bool) -> Option<&T> {
    list.get(index).filter(|other| is_same(other)).or_else(|| list.iter().find(|other| is_same(other)))
}

fn or_nan(value: Option<u64>) -> f64 {
    value.map_or(f64::NAN, |value| value as f64)
}

/// Shares and ticks. The kernel's iowait and idle may step back a little (proc_stat(5)): that is no time.
fn processors(then: &Stat, now: &Stat) -> Vec<f64> {
    let ticks: Vec<f64> =
        now.ticks.iter().zip(&then.ticks).map(|(now, then)| now.saturating_sub(*then) as f64).collect();
    let all: f64 = ticks.iter().sum();
    // In a short interval no tick may have passed: then there is no share, and not a share of nothing.
    let share = |ticks: &f64| if all > 0.0 { ticks * 100.0 / all } else { f64::NAN };
    let mut values: Vec<f64> = ticks.iter().map(share).collect();
    values.push(all);
    values.extend(ticks);
    values
}

fn system(then: &Stat, now: &Stat, seconds: f64) -> Vec<f64> {
    let rate = |then: Option<u64>, now: Option<u64>| {
        let grown = then.zip(now).and_then(|(then, now)| grown(then, now));
        or_nan(grown) / seconds
    };
    vec![
        rate(then.interrupts, now.interrupts),
        rate(then.context_switches, now.context_switches),
        rate(then.forks, now.forks),
        or_nan(now.running),
        or_nan(now.blocked),
    ]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two readings of a machine with one disk and one interface, `ms` apart; `step` times the same work.
    pub(crate) fn reading(ms: u64, step: u64) -> Reading {
        let stat = format!(
            "cpu  {} 0 0 {} {} 0 0 0 0 0\nintr {}\nctxt {}\nprocesses 5\nprocs_running 2\nprocs_blocked 0\n",
            step * 20,
            step * 60,
            step * 20,
            step * 500,
            step * 100
        );
        let memory = "MemFree: 9 kB\nCached: 8 kB\nDirty: 7 kB\nWriteback: 0 kB\n";
        let disks = format!(
            "254 0 vda {0} 0 0 0 {1} 0 {2} {1} 0 {1} {1} 0 0 0 0 {0} {0}\n7 0 loop0 9 9 9 9 9 9 9 9 0 9 9 0 0 0 0 0 0\n",
            step,
            step * 100,
            step * 800
        );
        let net = format!(
            "Inter-| Receive | Transmit\n face |bytes packets errs drop x|bytes packets errs drop x\n \
             eth0: {} {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
            step * 2048,
            step * 2
        );
        let interrupts =
            format!("CPU0\n36: {} PCI 1-edge  virtio1-req.0\n37: 4 PCI 1-edge  idle\n", step * 70);
        let texts = [stat.as_str(), memory, &disks, &net, &interrupts].map(Some);
        Reading::parse(ms * 1_000_000, texts).unwrap()
    }

    #[test]
    fn an_interval_has_a_value_for_each_quantity() {
        let sample = CounterSample::between(&reading(1_000, 3), &reading(1_500, 4));
        assert_eq!((sample.at_ns, sample.span_ns), (1_500_000_000, 500_000_000));
        for item in &sample.items {
            assert_eq!(item.values.len(), item.kind.quantities().len(), "{item:?}");
        }
        let of = |kind: QuantityKind, name: &str| {
            sample.items.iter().find(|item| item.kind == kind && item.name == name).unwrap()
        };
        let cpu = of(QuantityKind::Cpu, "");
        assert_eq!([cpu.value("active"), cpu.value("iowait")], [Some(20.0), Some(20.0)]);
        assert_eq!([cpu.value("idle_ticks"), cpu.value("ticks")], [Some(60.0), Some(100.0)]);
        assert_eq!(of(QuantityKind::System, "").value("context_switches"), Some(200.0));
        assert_eq!(of(QuantityKind::Memory, "").value("available"), None);
        let disk = of(QuantityKind::Disk, "vda");
        assert_eq!(
            [disk.value("writes"), disk.value("written"), disk.value("flushes")],
            [200.0, 800.0, 2.0].map(Some)
        );
        assert_eq!([disk.value("busy"), disk.value("write_wait")], [20.0, 1.0].map(Some));
        assert_eq!(of(QuantityKind::Network, "eth0").value("rx"), Some(4.0));
        assert_eq!(of(QuantityKind::Interrupt, "36 virtio1-req.0").value("interrupts"), Some(140.0));
        assert!(disk.has_traffic() && !of(QuantityKind::Disk, "loop0").has_traffic());
    }

    #[test]
    fn what_is_not_in_both_readings_is_left_out() {
        let (then, mut now) = (reading(1_000, 3), reading(2_000, 4));
        now.disks[1].name = "sda".to_owned();
        now.interfaces.clear();
        now.interrupts = None;
        let sample = CounterSample::between(&then, &now);
        let names: Vec<&str> = sample.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["", "", "", "vda"]);
    }

    #[test]
    fn no_tick_is_no_share_and_a_step_back_is_no_time() {
        let sample = CounterSample::between(&reading(1_000, 3), &reading(1_001, 3));
        assert_eq!((sample.items[0].value("idle"), sample.items[0].value("ticks")), (None, Some(0.0)));
        let (then, mut now) = (reading(1_000, 3), reading(2_000, 4));
        if let Some(stat) = &mut now.stat {
            stat.ticks[2] = 1;
        }
        let sample = CounterSample::between(&then, &now);
        assert_eq!([sample.items[0].value("iowait"), sample.items[0].value("active")], [0.0, 25.0].map(Some));
    }
}
