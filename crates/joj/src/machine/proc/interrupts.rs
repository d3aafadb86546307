//! How often each device interrupted the processors: /proc/interrupts, summed over processors.

use std::collections::BTreeMap;
use std::fs;

/// Counts at one moment, by the name that the driver gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    lines: Vec<InterruptLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct InterruptLine {
    /// `36`, or `LOC` for what comes from the processors themselves.
    label: String,
    name: String,
    count: u64,
}

impl Interrupts {
    /// Reads them; none where /proc/interrupts cannot be read.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let processors = lines.next().map_or(0, |header| header.split_whitespace().count());
        Self { lines: lines.filter_map(|line| parse_line(line, processors)).collect() }
    }

    /// The name of the interrupt with this number.
    pub fn name(&self, number: &str) -> Option<&str> {
        self.lines.iter().find(|line| line.label == number).map(|line| line.name.as_str())
    }

    /// (name, how many) of those that came since `earlier`, by name.
    pub fn since(&self, earlier: &Self) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for line in &self.lines {
            let same = |before: &&InterruptLine| before.label == line.label && before.name == line.name;
            let before = earlier.lines.iter().find(same).map_or(0, |before| before.count);
            *counts.entry(&line.name).or_default() += line.count.saturating_sub(before);
        }
        counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

/// ` 36:  0  88501560 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0` is virtio1-req.0;
/// ` 11:  5  7  GICv3  27 Level  arch_timer` arch_timer; `LOC: 24 26  Local timer interrupts` what it says.
fn parse_line(line: &str, processors: usize) -> Option<InterruptLine> {
    let (label, rest) = line.trim().split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    // Lines such as `ERR:` have one number for all processors.
    let counts: Vec<u64> = words.iter().take(processors).map_while(|word| word.parse().ok()).collect();
    let count = counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let described = words.get(counts.len()..).unwrap_or_default();
    let is_numbered = label.bytes().all(|letter| letter.is_ascii_digit());
    let name = if is_numbered {
        let trigger = |word: &str| {
            let kind = word.rsplit_once('-').map_or(word, |(_, kind)| kind);
            ["edge", "level", "fasteoi", "Edge", "Level", "None"].contains(&kind)
        };
        // Behind the trigger stand the devices that share the line; nobody there: nobody listens any more.
        let at = described.iter().rposition(|word| trigger(word))?;
        described.get(at + 1..).unwrap_or_default().join(" ")
    } else {
        described.join(" ")
    };
    let name = if name.is_empty() { label.to_owned() } else { name };
    Some(InterruptLine { label: label.to_owned(), name, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU1
 35:          0          1 PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
 36:          0        100 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 40:          7          1 GICv3  27 Level     mmc0
 41:          1          1 IO-APIC  16-fasteoi   uhci_hcd:usb1, ahci[0000:00:1f.2]
 42:          1          1 PCI-MSI 524290-edge      mmc0
LOC:         10         20   Local timer interrupts
ERR:          3
";

    #[test]
    fn interrupts_are_summed_over_processors_and_lines_of_one_name() {
        let before = Interrupts::parse(BEFORE);
        let after = BEFORE
            .replace("100", "150")
            .replace("  7   ", "  9   ")
            .replace("  20 ", "  25 ")
            .replace("1 PCI-MSI 524290", "2 PCI-MSI 524290");
        let seen = Interrupts::parse(&after).since(&before);
        let expected = [("Local timer interrupts", 5), ("mmc0", 3), ("virtio1-req.0", 50)];
        assert_eq!(seen, expected.map(|(name, count)| (name.to_owned(), count)));
        assert_eq!(before.name("41"), Some("uhci_hcd:usb1, ahci[0000:00:1f.2]"));
        assert_eq!((before.name("ERR"), before.name("99")), (Some("ERR"), None));
    }

    #[test]
    fn this_machine_has_interrupts_and_nonsense_has_none() {
        assert!(!Interrupts::read().lines.is_empty());
        assert_eq!(Interrupts::parse("no\nsense: at all").lines.len(), 1);
        assert_eq!(Interrupts::parse(""), Interrupts::default());
    }
}
