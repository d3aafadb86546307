//! A program's storage, cut: the log of its device, the states that a cut may leave, and what a check says of each.
//!
//!   program -> log -> cut -> image -> device without latency -> mount -> check -> unmount

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use joj_analysis::lab::program_crash::{Checked, Finding, ProgramRun};
use joj_device::assembly::Assembly;
use joj_device::crash::{CrashStates, Cut, Missing};
use joj_device::device::EmulatedDevice;
use joj_device::store::Store;

use crate::lab::guest::command::host_files::{HostFiles, ListedFiles, UsedFiles};
use crate::lab::guest::command::made_names::{MadeNames, ambiguous};
use crate::lab::guest::command::printed::{self, Printed, both, last_lines, tail};
use crate::lab::guest::command::rooted::{self, RunPlace, data_directory};
use crate::lab::guest::command::tracer::RequestTracer;
use crate::lab::guest::console::{FIRST_RUN, KEEPING, WrittenTeller, say_preparing, say_step};
use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::recording::Recorder;
use crate::lab::guest::stand::{JOURNAL_BYTES, Stand, align};
use crate::lab::guest::volume::Volume;
use crate::lab::jobs::program_crash::{
    CutState, ProgramCrashJob, ProgramReport, ProgramUnit, ProgramWritten, UsedFile,
};
use crate::lab::recorded_log::{RecordedLog, recording_file};
use crate::machine::proc::clock::{pause, shared_ns};

/// Where a check's output and the promises go, which is not below its root.
const PROMISES: &str = "/tmp/promises";
const STDOUT: &str = "/tmp/stdout";
const STDERR: &str = "/tmp/stderr";
/// How many lines had been promised, for the check.
const LINES_VARIABLE: &str = "JOJ_LINES";
/// At most so much of what a program printed to standard error is kept, from its end, in bytes.
const SAID_BYTES_MAX: usize = 4_000;
/// The same of what a check printed.
const CHECK_BYTES_MAX: usize = 1 << 20;
/// At most so much of a line that tells what was found, in characters.
const LINE_MAX: usize = 300;
/// States that are looked at to find out which missing writes it takes.
const SHRINKING_MAX: u64 = 100;

/// What is done before a program is recorded.
const READY: &str = "making the recorder ready";

/// So often the program runs at most before it is recorded.
const FIRST_RUNS_MAX: u32 = 8;

/// How often the check looks at the shortest state again, to see whether it always says the same.
const LOOKS_AGAIN: u32 = 3;

/// Cuts, and looks at states.
#[derive(Debug)]
pub struct ProgramCrashes<'job> {
    job: &'job ProgramCrashJob,
    share: &'job Path,
    host: HostFiles,
    /// What a check uses of the host's files is in memory.
    is_warm: bool,
    /// That of the volume at hand, and all that the program printed.
    recording: Option<(usize, RecordedLog<ProgramWritten>, Vec<u8>)>,
}

/// What was used of the host's files when the program and the check ran for the first time.
#[derive(Default)]
struct FirstUsed {
    by_program: Vec<UsedFile>,
    by_check: Vec<UsedFile>,
}

impl<'job> ProgramCrashes<'job> {
    /// For the units of `job`; recordings are in `share`.
    /// # Errors
    /// The host's files cannot be mounted.
    pub fn new(job: &'job ProgramCrashJob, share: &'job Path) -> Result<ProgramCrashes<'job>, GuestError> {
        Ok(ProgramCrashes { job, share, host: HostFiles::mount()?, is_warm: false, recording: None })
    }

    /// Does unit `number`.
    /// # Errors
    /// What could not be set up.
    pub fn report(&mut self, number: usize) -> Result<ProgramReport, GuestError> {
        match self.done(number) {
            Err(GuestError::Ambiguous(what)) => Ok(ProgramReport::Ambiguous(what)),
            done => done,
        }
    }

    fn done(&mut self, number: usize) -> Result<ProgramReport, GuestError> {
        match self.job.units.get(&number) {
            Some(ProgramUnit::Record(volume)) => self.record(*volume),
            Some(ProgramUnit::Uncut(volume)) => self.uncut(*volume),
            Some(ProgramUnit::Look(state)) => {
                let (checked, output) = self.look(state, &state.missing)?;
                let again = if checked.finding == Finding::Kept {
                    None
                } else {
                    self.look_again(state, &state.missing, &checked)?
                };
                Ok(ProgramReport::Looked(checked, output, again))
            }
            Some(ProgramUnit::Shrink(state, finding, said)) => self.shrink(state, *finding, said),
            None => Err(GuestError::NoUnit(number)),
        }
    }

    /// Runs the program first to have what it reads of the host's files in memory, then to be recorded. The clock of the guest jumps while
    /// it waits for the host.
    fn record(&mut self, index: usize) -> Result<ProgramReport, GuestError> {
        let (job, wanted) = (self.job, &self.job.volumes[index]);
        let FirstUsed { by_program, by_check } = self.first_run(index)?;
        say_preparing(READY);
        let recorder = Recorder::begin(wanted, &job.setting)?;
        let place = RunPlace::enter()?;
        let made = MadeNames::begin(&data_directory()).map_err(cannot("watch /data"))?;
        recorder.written.begin();
        self.before()?;
        say_preparing(READY);
        recorder.sync()?;
        align();
        let tracer = RequestTracer::begin();
        say_step("recording");
        let begin_ns = shared_ns();
        let printed = self.start()?;
        rooted::end_all();
        say_preparing("keeping the recording");
        pause(Duration::from_secs(job.seconds.settle));
        let settled_ns = shared_ns();
        let log = recorder.take()?;
        let trace = tracer.and_then(RequestTracer::end).unwrap_or_else(|reason| {
            println!("what the requests are for is not known: {reason}");
            Vec::new()
        });
        place.leave()?;
        say_step("the check, where nothing is cut");
        let run = self.ran(&printed, begin_ns, made)?;
        say_preparing("keeping the recording");
        let put = |end: &str, bytes: &[u8]| {
            fs::write(self.share.join(recording_file(index, end)), bytes).map_err(cannot("record"))
        };
        put("output", &printed.output)?;
        put("trace", &trace)?;
        put("run", &serde_json::to_vec(&run)?)?;
        put("files", &serde_json::to_vec(&by_program)?)?;
        let journal_bytes = wanted.journal_device.as_ref().map(|_| job.setting.device_bytes);
        let written = ProgramWritten { begin_ns, settled_ns, lines: printed.lines, journal_bytes };
        log.save(self.share, index, &written)?;
        Ok(ProgramReport::Ran(run, [by_program, by_check].concat()))
    }

    /// Has what the program and the check use of the host's files in memory, for all that comes behind to see the same. The program's clock
    /// jumps while it waits for the host: one that was ended for its time goes further when what it had read is in memory.
    fn first_run(&mut self, index: usize) -> Result<FirstUsed, GuestError> {
        let mut all = FirstUsed::default();
        for _ in 0..FIRST_RUNS_MAX {
            let known = all.by_program.len();
            let (FirstUsed { by_program, by_check }, was_ended) = self.run_for_files(index)?;
            for (all, more) in [(&mut all.by_program, by_program), (&mut all.by_check, by_check)] {
                all.extend(more);
                all.sort();
                all.dedup();
            }
            if !was_ended || all.by_program.len() == known {
                break;
            }
        }
        Ok(all)
    }

    /// Runs both once, and has in memory what they used. True where the program was ended for its time.
    fn run_for_files(&mut self, index: usize) -> Result<(FirstUsed, bool), GuestError> {
        say_preparing("making the device");
        let written = WrittenTeller::new(FIRST_RUN);
        let (of_program, of_check, was_ended) = {
            let _stand = Stand::watched(&self.job.volumes[index], &self.job.setting, || written.clone())?;
            written.begin();
            let (printed, of_program) = self.watched(|| {
                self.before()?;
                say_step(FIRST_RUN);
                let printed = self.start()?;
                rooted::end_all();
                Ok(printed)
            })?;
            say_step("the check, for the first time");
            let (_, of_check) = self.watched(|| self.check(printed.promises(), printed.lines.len()))?;
            (of_program, of_check, printed.was_ended)
        };
        say_preparing(KEEPING);
        let first_used = FirstUsed { by_program: of_program.facts(), by_check: of_check.facts() };
        self.host.keep(&of_program.and(of_check))?;
        Ok((first_used, was_ended))
    }

    /// Does `run` in a place of its own, and says what it used of the host's files.
    fn watched<T>(
        &self,
        run: impl FnOnce() -> Result<T, GuestError>,
    ) -> Result<(T, ListedFiles), GuestError> {
        let place = RunPlace::enter()?;
        let used = self.host.watch()?;
        let done = run()?;
        let used = used.list()?;
        place.leave()?;
        Ok((done, used))
    }

    /// Runs the program and the check where nothing is cut.
    fn uncut(&mut self, index: usize) -> Result<ProgramReport, GuestError> {
        let FirstUsed { by_program, by_check } = self.first_run(index)?;
        say_preparing("making the device");
        let (wanted, setting) = (&self.job.volumes[index], &self.job.setting);
        let written = WrittenTeller::new("running where nothing is cut");
        let _stand = Stand::watched(wanted, setting, || written.clone())?;
        written.begin();
        let place = RunPlace::enter()?;
        let made = MadeNames::begin(&data_directory()).map_err(cannot("watch /data"))?;
        self.before()?;
        say_step("running where nothing is cut");
        let begin_ns = shared_ns();
        let printed = self.start()?;
        rooted::end_all();
        place.leave()?;
        let run = self.ran(&printed, begin_ns, made)?;
        Ok(ProgramReport::Ran(run, [by_program, by_check].concat()))
    }

    /// What came of a program whose filesystem is mounted still, and what the check says there.
    fn ran(&self, printed: &Printed, begin_ns: u64, made: MadeNames) -> Result<ProgramRun, GuestError> {
        let lines = printed.lines.len();
        let stderr = tail(&fs::read(STDERR).unwrap_or_default(), SAID_BYTES_MAX);
        let place = RunPlace::enter()?;
        self.check_words(&made.end().map_err(cannot("watch /data"))?)?;
        let (uncut, _) = self.check(printed.promises(), lines)?;
        place.leave()?;
        Ok(ProgramRun {
            exit_code: printed.status.code(),
            signal: printed.status.signal(),
            was_ended: printed.was_ended,
            elapsed_ns: printed.end_ns - begin_ns,
            lines,
            stderr,
            uncut,
        })
    }

    /// Makes what the program begins with.
    fn before(&self) -> Result<(), GuestError> {
        let Some(before) = &self.job.before else { return Ok(()) };
        say_step("--before");
        let (status, printed) = self.run(&mut rooted::command(&shell(before), &self.job.environment))?;
        if status.success() {
            return Ok(());
        }
        Err(GuestError::Before { status, said: last_lines(&printed) })
    }

    /// Runs the program.
    fn start(&self) -> Result<Printed, GuestError> {
        let mut command = rooted::command(&self.job.command, &self.job.environment);
        command.stderr(File::create(STDERR).map_err(cannot(format!("make {STDERR}")))?);
        let limit = Duration::from_secs(self.job.seconds.program);
        printed::run(&mut command, limit).map_err(cannot(format!("start {}", self.job.command[0])))
    }

    /// What the check says of a state, but with `missing` for what it lacks; and what it printed.
    fn look(&mut self, state: &CutState, missing: &Missing) -> Result<(Checked, String), GuestError> {
        self.load(state.volume)?;
        let Some((_, recording, output)) = &self.recording else { return Err(GuestError::NoRecording) };
        let promised = state.promised;
        let end = promised.checked_sub(1).and_then(|last| recording.written.lines.get(last));
        let promises = output[..end.map_or(0, |(_, end)| *end)].to_vec();
        let cut = Cut::at(&recording.logged, state.at_ns);
        let mut store = recording.base.clone();
        CrashStates::new(&recording.history, cut).put_without(&mut store, missing);
        self.verdict(state.volume, store, &promises, promised)
    }

    /// What the check says of a state of which it said `first`, where that is something else.
    fn look_again(
        &mut self,
        state: &CutState,
        missing: &Missing,
        first: &Checked,
    ) -> Result<Option<Checked>, GuestError> {
        say_step("a broken state once more");
        let (again, _) = self.look(state, missing)?;
        Ok(Some(again).filter(|again| again.group() != first.group()))
    }

    /// A first look has what it uses of the host's files in memory from then on, and does not count: so all that count see the same of them.
    fn verdict(
        &mut self,
        volume: usize,
        store: Store,
        promises: &[u8],
        promised: usize,
    ) -> Result<(Checked, String), GuestError> {
        if !self.is_warm {
            let (.., used) = self.checked(volume, store.clone(), promises, promised, true)?;
            if let Some(used) = used {
                say_preparing(KEEPING);
                self.host.keep(&used)?;
                self.is_warm = true;
            }
            say_step("the first state once more");
        }
        let (checked, output, _) = self.checked(volume, store, promises, promised, false)?;
        Ok((checked, output))
    }

    /// The same of a look alone, and what it used where it is watched. Nothing is used where there is no filesystem to look at.
    fn checked(
        &self,
        volume: usize,
        mut store: Store,
        promises: &[u8],
        promised: usize,
        is_watched: bool,
    ) -> Result<(Checked, String, Option<ListedFiles>), GuestError> {
        let (wanted, device_bytes) = (&self.job.volumes[volume], self.job.setting.device_bytes);
        let journal = wanted.journal_device.as_ref().map(|_| store.split_off(device_bytes));
        let emulated = without_latency(1, store, device_bytes)?;
        let journal = journal.map(|store| without_latency(2, store, JOURNAL_BYTES)).transpose()?;
        let volume = match Volume::mount(wanted, emulated.node(), journal.as_ref().map(Emulated::node)) {
            Ok(volume) => volume,
            Err(reason) => {
                return Ok((found(Finding::Unmountable, &reason.to_string()), String::new(), None));
            }
        };
        let place = RunPlace::enter()?;
        let used = is_watched.then(|| self.host.watch()).transpose()?;
        let (checked, output) = self.check(promises, promised)?;
        let used = used.map(UsedFiles::list).transpose()?;
        let unmounted = place.leave().and_then(|()| volume.unmount());
        let checked = match unmounted {
            Err(reason) if checked.finding == Finding::Kept => found(Finding::Unusable, &reason.to_string()),
            _ => checked,
        };
        Ok((checked, output, used))
    }

    /// That each word which stands for a file of the host can mean no other one.
    fn check_words(&self, made: &BTreeSet<OsString>) -> Result<(), GuestError> {
        let two_meanings = ambiguous(&self.job.host_words, &data_directory(), made);
        two_meanings.map_or(Ok(()), |what| Err(GuestError::Ambiguous(what)))
    }

    /// Runs the check in the filesystem that is mounted.
    fn check(&self, promises: &[u8], promised: usize) -> Result<(Checked, String), GuestError> {
        self.check_words(&BTreeSet::new())?;
        let problem = &cannot(format!("make {PROMISES}"));
        File::create(PROMISES).and_then(|mut file| file.write_all(promises)).map_err(problem)?;
        let mut command = rooted::command(&shell(&self.job.check), &self.job.environment);
        command.stdin(File::open(PROMISES).map_err(problem)?).env(LINES_VARIABLE, promised.to_string());
        let (status, printed) = self.run(&mut command)?;
        let finding = Finding::of_exit_code(status.code());
        let mut said = last_lines(&printed);
        if finding == Finding::CheckFailed {
            said = if said.is_empty() { status.to_string() } else { format!("{status}: {said}") };
        }
        Ok((found(finding, &said), both(printed)))
    }

    /// Runs a command to its end, and gives the ends of what it printed to standard output and to standard error.
    fn run(&self, command: &mut Command) -> Result<(ExitStatus, [String; 2]), GuestError> {
        let make = |file: &str| File::create(file).map_err(cannot(format!("make {file}")));
        command.stdout(make(STDOUT)?).stderr(make(STDERR)?);
        let status = command.status().map_err(cannot("start /bin/sh"))?;
        rooted::end_all();
        Ok((status, [STDOUT, STDERR].map(|file| tail(&fs::read(file).unwrap_or_default(), CHECK_BYTES_MAX))))
    }

    /// Puts back what can be put back: halves of the missing blocks first, then smaller parts, then each alone.
    fn shrink(
        &mut self,
        state: &CutState,
        finding: Finding,
        said: &str,
    ) -> Result<ProgramReport, GuestError> {
        let first = Checked { finding, said: said.to_owned() };
        let wanted = first.group();
        let (mut missing, mut looked) = (state.missing.clone(), 0);
        let mut part = missing.blocks().count().div_ceil(2);
        while part > 0 && looked < SHRINKING_MAX {
            let blocks: Vec<u64> = missing.blocks().collect();
            for some in blocks.chunks(part) {
                let less = missing.but_for(some);
                looked += 1;
                say_step(&format!("{looked} tried"));
                if self.look(state, &less)?.0.group() == wanted {
                    missing = less;
                }
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
        // Of each block that has to be there, as few of its writes and sectors as it takes.
        let mut is_less = true;
        while is_less {
            is_less = false;
            for less in missing.lessened() {
                if looked >= SHRINKING_MAX {
                    break;
                }
                looked += 1;
                say_step(&format!("{looked} tried"));
                if self.look(state, &less)?.0.group() == wanted {
                    (missing, is_less) = (less, true);
                    break;
                }
            }
        }
        let mut again = None;
        for _ in 0..LOOKS_AGAIN {
            again = again.or(self.look_again(state, &missing, &first)?);
        }
        Ok(ProgramReport::Shrunk(missing, looked, again))
    }

    fn load(&mut self, index: usize) -> Result<(), GuestError> {
        if self.recording.as_ref().is_none_or(|(loaded, ..)| *loaded != index) {
            self.recording = None;
            let mut recording: RecordedLog<ProgramWritten> = RecordedLog::load(self.share, index)?;
            if self.job.ignore_flushes {
                recording.history = recording.history.without_promises();
            }
            let output = self.share.join(recording_file(index, "output"));
            let output = fs::read(output).map_err(cannot("read the recording"))?;
            self.recording = Some((index, recording, output));
        }
        Ok(())
    }
}

/// Device `number`, with these bytes.
fn without_latency(number: u32, store: Store, bytes: u64) -> Result<Emulated, GuestError> {
    let ram = Assembly::named("ram")?;
    Emulated::serve(number, &ram, EmulatedDevice::with_store(&ram, bytes, store, ()))
}

fn shell(script: &str) -> [String; 3] {
    ["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()]
}

fn found(finding: Finding, said: &str) -> Checked {
    // A terminal would take them for orders.
    let shown = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    Checked { finding, said: said.chars().map(shown).take(LINE_MAX).collect() }
}
