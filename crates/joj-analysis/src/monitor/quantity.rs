//! What is measured: kinds of things, and for each kind its quantities with their units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of thing that has quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityKind {
    /// All processors together.
    Cpu,
    /// The kernel's scheduler and interrupts, all together.
    System,
    /// Main memory.
    Memory,
    /// A block device or partition.
    Disk,
    /// A network interface.
    Network,
    /// A source of interrupts.
    Interrupt,
}

/// What a value counts for in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As long as its interval was.
    Time,
    /// As much as this count of the same kind says.
    Count(&'static str),
    /// As much as this rate of the same kind says, times the interval.
    Rate(&'static str),
}

/// One quantity of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// Its name, as files have it.
    pub name: &'static str,
    /// Its unit, as files have it.
    pub unit: &'static str,
    /// How its mean is formed: so that it is exact, not a mean of ratios.
    pub weight: Weight,
    /// The most that it can be. What the kernel counts in whole timer ticks can seem to be more in a short interval, and less in
    /// the next: means are of what was counted, single values are cut.
    pub most: f64,
}

const fn of(name: &'static str, unit: &'static str, weight: Weight) -> Quantity {
    Quantity { name, unit, weight, most: f64::INFINITY }
}

const fn rate(name: &'static str) -> Quantity {
    of(name, "1/s", Weight::Time)
}

const CPU: [Quantity; 9] = [
    of("active", "%", Weight::Count("ticks")),
    of("idle", "%", Weight::Count("ticks")),
    of("iowait", "%", Weight::Count("ticks")),
    of("steal", "%", Weight::Count("ticks")),
    of("ticks", "ticks", Weight::Time),
    of("active_ticks", "ticks", Weight::Time),
    of("idle_ticks", "ticks", Weight::Time),
    of("iowait_ticks", "ticks", Weight::Time),
    of("steal_ticks", "ticks", Weight::Time),
];

const SYSTEM: [Quantity; 5] = [
    rate("interrupts"),
    rate("context_switches"),
    rate("forks"),
    of("running", "processes", Weight::Time),
    of("blocked", "processes", Weight::Time),
];

const MEMORY: [Quantity; 5] = [
    of("free", "KiB", Weight::Time),
    of("available", "KiB", Weight::Time),
    of("cached", "KiB", Weight::Time),
    of("dirty", "KiB", Weight::Time),
    of("writeback", "KiB", Weight::Time),
];

const DISK: [Quantity; 17] = [
    Quantity { most: 100.0, ..of("busy", "%", Weight::Time) },
    of("queue", "requests", Weight::Time),
    of("in_flight", "requests", Weight::Time),
    rate("reads"),
    rate("reads_merged"),
    of("read", "KiB/s", Weight::Time),
    of("read_wait", "ms", Weight::Rate("reads")),
    rate("writes"),
    rate("writes_merged"),
    of("written", "KiB/s", Weight::Time),
    of("write_wait", "ms", Weight::Rate("writes")),
    rate("discards"),
    rate("discards_merged"),
    of("discarded", "KiB/s", Weight::Time),
    of("discard_wait", "ms", Weight::Rate("discards")),
    rate("flushes"),
    of("flush_wait", "ms", Weight::Rate("flushes")),
];

const NETWORK: [Quantity; 8] = [
    of("rx", "KiB/s", Weight::Time),
    rate("rx_packets"),
    rate("rx_errors"),
    rate("rx_dropped"),
    of("tx", "KiB/s", Weight::Time),
    rate("tx_packets"),
    rate("tx_errors"),
    rate("tx_dropped"),
];

const INTERRUPT: [Quantity; 1] = [rate("interrupts")];

impl Quantity {
    /// A single value, cut at the most that it can be. What is unknown stays so.
    pub fn cut(&self, value: f64) -> f64 {
        if value > self.most { self.most } else { value }
    }
}

impl QuantityKind {
    /// Every kind, in the order of files and tables.
    pub const ALL: [QuantityKind; 6] = [
        QuantityKind::Cpu,
        QuantityKind::System,
        QuantityKind::Memory,
        QuantityKind::Disk,
        QuantityKind::Network,
        QuantityKind::Interrupt,
    ];

    /// Its quantities, in the order of files and tables.
    pub fn quantities(self) -> &'static [Quantity] {
        match self {
            QuantityKind::Cpu => &CPU,
            QuantityKind::System => &SYSTEM,
            QuantityKind::Memory => &MEMORY,
            QuantityKind::Disk => &DISK,
            QuantityKind::Network => &NETWORK,
            QuantityKind::Interrupt => &INTERRUPT,
        }
    }

    /// As files spell it.
    pub fn word(self) -> &'static str {
        match self {
            QuantityKind::Cpu => "cpu",
            QuantityKind::System => "system",
            QuantityKind::Memory => "memory",
            QuantityKind::Disk => "disk",
            QuantityKind::Network => "network",
            QuantityKind::Interrupt => "interrupt",
        }
    }

    /// True where the machine has one of it, without a name of its own.
    pub fn is_whole_machine(self) -> bool {
        matches!(self, QuantityKind::Cpu | QuantityKind::System | QuantityKind::Memory)
    }

    /// Where a quantity stands among [`QuantityKind::quantities`]. The name must be one of them.
    pub fn index_of(self, name: &str) -> usize {
        let index = self.quantities().iter().position(|quantity| quantity.name == name);
        assert!(index.is_some(), "{} has no quantity `{name}`", self.word());
        index.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_weights_name_quantities() {
        for kind in QuantityKind::ALL {
            for (index, quantity) in kind.quantities().iter().enumerate() {
                assert_eq!(kind.index_of(quantity.name), index, "{kind:?} {}", quantity.name);
                if let Weight::Count(other) | Weight::Rate(other) = quantity.weight {
                    kind.index_of(other);
                }
            }
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.word()));
        }
    }
}
