//! /proc/interrupts: how often each device interrupted each processor.
//!
//! ```text
//!            CPU0       CPU1
//!  36:          0   88538328 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
//! LOC:   24783010   26865072   Local timer interrupts
//! ERR:          0
//! ```
//!
//! Source: show_interrupts in the kernel's kernel/irq/proc.c. Two spaces stand before the names of the devices, which may
//! have single ones. Counts are 32 bits wide and wrap for each processor by itself.

use crate::monitor::counter::grown;
use crate::monitor::proc::proc_text::{ProcError, ProcText};

/// What /proc/interrupts says at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// Names of the processors' columns.
    pub processors: Vec<String>,
    /// A source for each line.
    pub sources: Vec<InterruptSource>,
}

/// A line of /proc/interrupts: what interrupts, and how often on each processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptSource {
    /// `36 virtio1-req.0`, `LOC Local timer interrupts`: number or label, then devices or meaning.
    pub name: String,
    /// Interrupts since boot, by processor; one number alone where the kernel does not tell them apart.
    pub counts: Vec<u64>,
}

impl Interrupts {
    /// Reads the text.
    /// # Errors
    /// Where the first line does not name processors, or a line has too few numbers.
    pub fn parse(text: &str) -> Result<Interrupts, ProcError> {
        let text = ProcText::new("interrupts", text)?;
        let mut lines = text.lines();
        let (_, heading) = lines.next().unwrap_or((1, ""));
        let processors: Vec<String> = heading.split_ascii_whitespace().map(str::to_owned).collect();
        if processors.is_empty() || !processors.iter().all(|name| name.starts_with("CPU")) {
            return Err(text.error(1, "it does not name the processors: `CPU0 CPU1 ...`"));
        }
        let sources = lines.map(|(line, words)| source(&text, line, words, processors.len()));
        let sources = sources.collect::<Result<_, _>>()?;
        Ok(Interrupts { processors, sources })
    }
}

fn source(
    text: &ProcText<'_>,
    line: usize,
    words: &str,
    processors: usize,
) -> Result<InterruptSource, ProcError> {
    let (label, rest) = words.split_once(':').ok_or_else(|| text.error(line, "it is not `name: numbers`"))?;
    let label = label.trim();
    let mut counts = Vec::with_capacity(processors);
    let mut rest = rest.trim_start();
    while counts.len() < processors && !rest.is_empty() {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        counts.push(text.number(line, word)?);
        rest = behind.trim_start();
    }
    // `ERR` and `MIS` have one number for the whole machine; what has a number of its own has one for each processor.
    let is_single = counts.len() == 1 && !label.starts_with(|letter: char| letter.is_ascii_digit());
    if counts.len() != processors && !is_single {
        let what = format!("it has {} numbers for {processors} processors", counts.len());
        return Err(text.error(line, what));
    }
    let device = device(label, rest.trim_end());
    let name = if device.is_empty() { label.to_owned() } else { format!("{label} {device}") };
    Ok(InterruptSource { name, counts })
}

/// The devices' names behind the controller's, its own number and how it is triggered; nothing where nobody listens.
fn device<'a>(label: &str, description: &'a str) -> &'a str {
    if !label.starts_with(|letter: char| letter.is_ascii_digit()) {
        return description;
    }
    let last = description.rsplit_once("  ").map_or(description, |(_, last)| last.trim());
    // `5-edge`, `16-fasteoi`, `30 Level`: a controller's number and a trigger. But `30200000.gpio` is a device.
    let is_trigger = |word: &str| {
        let behind = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
        matches!(word, "Level" | "Edge") || (behind != word && (behind.is_empty() || behind.starts_with('-')))
    };
    if last.split_ascii_whitespace().all(is_trigger) { "" } else { last }
}

impl Interrupts {
    /// Each source's interrupts per second since `then`, `seconds` before. Sources that are new or began anew are left
    /// out, and processors that are not in both readings.
    pub fn since(&self, then: &Interrupts, seconds: f64) -> Vec<(String, f64)> {
        let is_same = self.processors == then.processors;
        let column_then = |index: usize| {
            let name = &self.processors[index];
            then.processors.iter().position(|other| other == name)
        };
        let mut rates = Vec::with_capacity(self.sources.len());
        for (index, source) in self.sources.iter().enumerate() {
            let near = then.sources.get(index).filter(|old| old.name == source.name);
            let Some(old) = near.or_else(|| then.sources.iter().find(|old| old.name == source.name)) else {
                continue;
            };
            let is_single = source.counts.len() == 1 && old.counts.len() == 1;
            let before = |column: usize| {
                let column = if is_same || is_single { Some(column) } else { column_then(column) };
                old.counts.get(column?).copied()
            };
            let counts = source.counts.iter().enumerate();
            let grown: Option<Vec<u64>> =
                counts.filter_map(|(column, now)| Some(grown(before(column)?, *now))).collect();
            if let Some(grown) = grown {
                let all: u64 = grown.iter().sum();
                rates.push((source.name.clone(), all as f64 / seconds));
            }
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "           CPU0       CPU1\n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n \
                       36:          0   88538328 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
                       16:          3          4   IO-APIC  16-fasteoi   ehci_hcd:usb1, i801 smbus\n \
                       17:          3          4   IO-APIC   2-edge\n\
                       LOC:   24783010   26865072   Local timer interrupts\nERR:          0\n";
    const ARM: &str = "           CPU0       CPU1       CPU2       CPU3\n 29:   1   2   3   4     GICv2  30 Level     \
                       arch_timer\n106:   5   0   0   0  msmgpio   9 Edge      mmc1 cd\nIPI0:   1   2   3   4       \
                       Rescheduling interrupts\n";

    #[test]
    fn devices_are_found_behind_their_controllers() {
        let names = |text| {
            let sources = Interrupts::parse(text).unwrap().sources;
            sources.into_iter().map(|source| source.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names(X86),
            [
                "24 ACPI:Ged",
                "36 virtio1-req.0",
                "16 ehci_hcd:usb1, i801 smbus",
                "17",
                "LOC Local timer interrupts",
                "ERR"
            ]
        );
        assert_eq!(names(ARM), ["29 arch_timer", "106 mmc1 cd", "IPI0 Rescheduling interrupts"]);
    }

    #[test]
    fn rates_add_up_the_processors_and_survive_a_wrap() {
        let reading = |first: u64, second: u64| {
            Interrupts::parse(&format!("CPU0 CPU1\n9: {first} {second} X  1-edge  nvme0q1\nERR: 4\n"))
                .unwrap()
        };
        let rates = reading(10, 5).since(&reading(4, (1 << 32) - 1), 2.0);
        assert_eq!(rates, [("9 nvme0q1".to_owned(), 6.0), ("ERR".to_owned(), 0.0)]);
        assert_eq!(reading(3, 5).since(&reading(4, 5), 2.0).len(), 1, "began anew");
    }

    #[test]
    fn sources_and_processors_may_come_and_go() {
        let then = Interrupts::parse("CPU0 CPU1\n1: 5 100 a  b\n2: 1 1 a  c\n").unwrap();
        let now = Interrupts::parse("CPU1 CPU2\n7: 9 9 a  new\n1: 120 50 a  b\n").unwrap();
        assert_eq!(now.since(&then, 1.0), [("1 b".to_owned(), 20.0)]);
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (text, expected) in [
            ("", "interrupts, line 1: it does not name the processors: `CPU0 CPU1 ...`"),
            ("CPU0 CPU1\n36: 1\n", "interrupts, line 2: it has 1 numbers for 2 processors"),
            ("CPU0 CPU1\nLOC:\n", "interrupts, line 2: it has 0 numbers for 2 processors"),
            ("CPU0 CPU1\n36: 1 PCI\n", "interrupts, line 2: `PCI` is no whole number"),
            ("CPU0 CPU1\n36\n", "interrupts, line 2: it is not `name: numbers`"),
        ] {
            assert_eq!(Interrupts::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
