//! Everything that is made of events on their way: attribution, then what looks at its outcomes.

use joj_analysis::trace::attribute::{Attributor, Outcome};
use joj_analysis::trace::event::Event;
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::steps::{Stories, Story};
use joj_analysis::trace::summary::{Summariser, Summary};
use joj_analysis::trace::texts::Texts;

/// What is looked at. Memory does not grow with the number of events.
#[derive(Debug)]
pub struct Analysis {
    attributor: Attributor,
    looks: Looks,
}

#[derive(Debug)]
struct Looks {
    summariser: Summariser,
    stories: Stories,
}

/// What came of it.
#[derive(Debug)]
pub struct Findings {
    /// The trace in numbers.
    pub summary: Summary,
    /// Transactions, step by step.
    pub stories: Vec<Story>,
}

impl Looks {
    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts) {
        self.summariser.outcome(outcome, texts);
        self.stories.outcome(outcome);
    }
}

impl Analysis {
    /// For a trace with this head; `stories`: how many transactions to skip and to keep.
    pub fn new(header: &Header, types: FileTypes, (skip, keep): (usize, usize)) -> Self {
        let looks = Looks { summariser: Summariser::default(), stories: Stories::new(skip, keep) };
        Self { attributor: Attributor::new(header, types), looks }
    }

    /// The next event.
    pub fn event(&mut self, event: &Event, texts: &Texts) {
        self.looks.summariser.event(event);
        let looks = &mut self.looks;
        self.attributor.event(event, texts, &mut |outcome, texts| looks.outcome(&outcome, texts));
    }

    /// The trace is over.
    pub fn finish(mut self, header: &Header, texts: &Texts) -> Findings {
        let looks = &mut self.looks;
        self.attributor.finish(texts, &mut |outcome, texts| looks.outcome(&outcome, texts));
        Findings { summary: self.looks.summariser.finish(header), stories: self.looks.stories.finish() }
    }
}
