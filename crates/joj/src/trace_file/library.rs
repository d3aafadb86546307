//! Runs the Parquet library, which panics at some of what no writer writes: that is damage, and no matter of the user's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use super::error::Damage;

thread_local! {
    /// True while the library runs in this thread.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs the library. Its panics are damage, of which nothing is printed. Those of other threads, and of this one before and
/// afterwards, are shown as ever.
pub fn caught<T>(decode: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    HOOK.call_once(|| {
        let show = take_hook();
        set_hook(Box::new(move |panic| {
            if !DECODES.get() {
                show(panic);
            }
        }));
    });
    DECODES.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(false);
    result.unwrap_or_else(|_| Err(Damage::GaveUp))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const IS_CHILD: &str = "JOJ_TEST_PANICS";

    /// What is printed goes where the process prints: the panics are those of a child.
    #[test]
    fn nothing_is_printed_of_the_librarys_panics_and_all_of_others() {
        if std::env::var_os(IS_CHILD).is_none() {
            let test =
                "trace_file::library::tests::nothing_is_printed_of_the_librarys_panics_and_all_of_others";
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test, "--nocapture"])
                .env(IS_CHILD, "1")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            let shown = ["before", "inside", "beside", "behind"].map(|place| told.contains(place));
            assert_eq!((shown, output.status.success()), ([true, false, true, true], true), "{told}");
            return;
        }
        let panics = |place: &'static str| drop(catch_unwind(|| panic!("{place}")));
        panics("before");
        let result: Result<(), Damage> = caught(|| {
            std::thread::spawn(move || panics("beside")).join().unwrap();
            panic!("inside")
        });
        assert!(matches!(result, Err(Damage::GaveUp)));
        panics("behind");
    }
}
