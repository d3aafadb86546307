//! The seccomp filter: stops at calls that are looked at and lets all others run at full speed.
//!
//! Of `fcntl`, `ioctl` and `mmap` an argument says whether the call is looked at. A call of a 32-bit program is always told, to be
//! counted: its numbers mean other calls.

use joj_analysis::recording::system_calls::captured::called::{CalledName, commands};

use crate::machine::capture::calls::numbers;
use crate::machine::proc::seccomp::{
    ARCHITECTURE_AT, NUMBER_AT, OWN_ARCHITECTURE, answer, argument_at, if_any_bit, if_equal, instruction,
    load,
};

/// Calls that make threads and processes.
#[cfg(target_arch = "x86_64")]
pub const FORKS: [libc::c_long; 4] = [libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
/// See above.
#[cfg(not(target_arch = "x86_64"))]
pub const FORKS: [libc::c_long; 2] = [libc::SYS_clone, libc::SYS_clone3];

const MAP_ANONYMOUS: u32 = 0x20;

/// Stops at a call if its argument has one of these values.
fn with_argument(program: &mut Vec<libc::sock_filter>, number: u32, index: u32, values: &[u64]) {
    let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
    // Past the load, the comparisons and the two answers.
    program.push(if_equal(number, 0, count + 3));
    program.push(load(argument_at(index)));
    for (value, left) in values.iter().zip((0..count).rev()) {
        program.push(if_equal(u32::try_from(*value).unwrap_or(u32::MAX), left + 1, 0));
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program.push(answer(libc::SECCOMP_RET_TRACE));
}

/// Stops at an ioctl about its descriptor, and at one that may change a file.
fn with_request(program: &mut Vec<libc::sock_filter>, number: u32) {
    let told = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let mut body = vec![load(argument_at(1))];
    for (values, action) in [
        (&[commands::FIONCLEX, commands::FIOCLEX][..], libc::SECCOMP_RET_TRACE),
        (&commands::ASKING[..], libc::SECCOMP_RET_ALLOW),
    ] {
        for value in values {
            body.push(if_equal(told(*value), 0, 1));
            body.push(answer(action));
        }
    }
    body.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, 0xff00));
    for kind in commands::FILESYSTEM_KINDS {
        body.push(if_equal(told(kind << 8), 0, 1));
        body.push(answer(libc::SECCOMP_RET_TRACE));
    }
    body.push(answer(libc::SECCOMP_RET_ALLOW));
    program.push(if_equal(number, 0, u8::try_from(body.len()).unwrap_or(u8::MAX)));
    program.append(&mut body);
}

/// The filter's program.
pub fn program() -> Vec<libc::sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE_AT),
        if_equal(OWN_ARCHITECTURE, 1, 0),
        answer(libc::SECCOMP_RET_TRACE),
        load(NUMBER_AT),
    ];
    let forks = FORKS.iter().filter_map(|number| u32::try_from(*number).ok());
    let whole = numbers::all()
        .filter(|(_, called)| !matches!(called, CalledName::Fcntl | CalledName::Ioctl | CalledName::Mmap));
    for number in whole.map(|(number, _)| number).chain(forks) {
        program.push(if_equal(number, 0, 1));
        program.push(answer(libc::SECCOMP_RET_TRACE));
    }
    for (number, called) in numbers::all() {
        match called {
            CalledName::Fcntl => with_argument(&mut program, number, 1, &commands::ALL),
            CalledName::Ioctl => with_request(&mut program, number),
            CalledName::Mmap => {
                program.push(if_equal(number, 0, 4));
                program.push(load(argument_at(3)));
                program.push(if_any_bit(MAP_ANONYMOUS, 1, 0));
                program.push(answer(libc::SECCOMP_RET_TRACE));
                program.push(answer(libc::SECCOMP_RET_ALLOW));
            }
            _ => {}
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}
