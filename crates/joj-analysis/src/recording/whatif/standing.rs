//! Whether a configuration is faster than the recorded one, as far as that was measured.

use crate::recording::whatif::outcome::{WhatifFigures, WhatifResult};

/// A smaller gain is not worth a change.
pub const GAIN_MIN: f64 = 0.05;
/// On an emulated disk two rows that differ by no more are the same.
const SAME_MAX: f64 = 0.01;

/// The recorded one is as long as the recording where it differs by no larger a part.
const LENGTHS_DIFFER_MIN: f64 = 0.1;

/// What to say where the recorded one is not as long as the recording.
pub fn another_length(result: &WhatifResult, recorded: &WhatifFigures) -> Option<String> {
    let differs = recorded.elapsed_ns.median / result.recorded_ns as f64 - 1.0;
    // An emulated disk takes longer than one of today's machines, as a rule.
    let is_other_disk = result.emulated && differs > 0.0;
    (differs.is_finite() && differs.abs() > LENGTHS_DIFFER_MIN && !is_other_disk).then(|| {
        format!(
            "As recorded differs from the recording's length by {:+.0} %: this disk takes another time, or its threads waited for a \
             processor, which no row has.",
            differs * 100.0
        )
    })
}

/// How a configuration stands beside the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Whatever is not known.
    Faster,
    /// Only where waits in vain end earlier.
    PerhapsFaster,
    /// It seems faster, and lacks closes of a database that may make it slower.
    WithoutCloses,
    /// By less than is worth a change.
    LittleFaster,
    /// It may be chance.
    Unclear,
    /// By any amount.
    Slower,
}

impl Standing {
    /// True where it seems faster by any amount.
    pub fn is_faster(self) -> bool {
        matches!(self, Self::Faster | Self::PerhapsFaster | Self::LittleFaster)
    }
}

/// By the forecast as it seems, unless it depends on the waits whether it is faster.
pub fn standing(figures: &WhatifFigures, recorded: &WhatifFigures, is_emulated: bool) -> Standing {
    let seems = beside(figures, recorded, is_emulated);
    let Some(waits) = figures.waits else { return seems };
    let is_faster = |ns: f64| {
        let factor = ns / figures.elapsed_ns.median.max(1.0);
        let (elapsed_ns, ratio) = (figures.elapsed_ns.scaled(factor), figures.ratio.scaled(factor));
        beside(&WhatifFigures { elapsed_ns, ratio, ..figures.clone() }, recorded, is_emulated)
            == Standing::Faster
    };
    match (is_faster(waits.shortest_ns), is_faster(waits.longest_ns)) {
        (true, true) => Standing::Faster,
        (true, false) => Standing::PerhapsFaster,
        (false, _) => seems,
    }
}

fn beside(figures: &WhatifFigures, recorded: &WhatifFigures, is_emulated: bool) -> Standing {
    if is_emulated && (figures.ratio.median - 1.0).abs() <= SAME_MAX {
        return Standing::Unclear;
    }
    // Beside the recorded one of the same round, too, where rounds have something in common: what disturbed one round disturbed both.
    let differs = figures.ratio.high < 1.0 || figures.ratio.low > 1.0;
    match differs && !figures.elapsed_ns.overlaps(&recorded.elapsed_ns) {
        false => Standing::Unclear,
        true if figures.elapsed_ns.median > recorded.elapsed_ns.median => Standing::Slower,
        true if figures.ratio.median > 1.0 - GAIN_MIN => Standing::LittleFaster,
        true => Standing::Faster,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Estimate;

    #[test]
    fn another_length_than_the_recording_s_is_told() {
        let one = |value: f64| Estimate::of(&[value]).unwrap();
        let figures = WhatifFigures {
            elapsed_ns: one(150e6),
            waits: None,
            ratio: one(1.0),
            blocked_ns: one(1e6),
            syncs: None,
            device_bytes: None,
            differing: 0,
        };
        let said =
            |recorded_ns| another_length(&WhatifResult { recorded_ns, ..WhatifResult::default() }, &figures);
        assert!(said(200_000_000).unwrap().contains(" by -25 %:"));
        assert!(said(100_000_000).unwrap().contains(" by +50 %:"));
        assert_eq!((said(151_000_000), said(0)), (None, None));
        let emulated = WhatifResult { recorded_ns: 100_000_000, emulated: true, ..WhatifResult::default() };
        assert_eq!(another_length(&emulated, &figures), None);
    }
}
