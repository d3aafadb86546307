//! Tells the program which commit it was built from, so that a result names what measured it, and compiles the programs
//! with which `joj trace` and `joj record` capture inside the kernel.

use std::env;
use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Of `joj trace` and of `joj record`.
const BPF_PROGRAMS: [&str; 2] = ["trace", "recording"];

/// Compiles the eBPF objects, or says why there are none: joj is then built all the same and says it when asked to trace.
fn compile_bpf() -> Result<(), String> {
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    if !["x86_64", "aarch64"].contains(&architecture.as_str()) {
        return Err(format!("for {architecture}, whose system calls the eBPF programs do not know"));
    }
    let directory = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    for name in BPF_PROGRAMS {
        let source = format!("bpf/{name}.bpf.c");
        let result = Command::new(env::var("CLANG").unwrap_or_else(|_| "clang".to_owned()))
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
            .arg(format!("-D__TARGET_{architecture}"))
            .args(["-c", &source, "-o"])
            .arg(Path::new(&directory).join(format!("{name}.bpf.o")))
            .output();
        match result {
            Ok(output) if output.status.success() => {}
            // Our code and a clang that is there: silence would lose the eBPF capture without anybody noticing.
            Ok(output) => {
                panic!("clang cannot compile {source}: {}", String::from_utf8_lossy(&output.stderr))
            }
            Err(_) => return Err("without clang".to_owned()),
        }
    }
    Ok(())
}

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--", "."]).is_some_and(|list| !list.is_empty());
    println!("cargo::rustc-env=JOJ_COMMIT={commit}{}", if changed { "+changes" } else { "" });
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    // Every commit and checkout writes a line there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rustc-check-cfg=cfg(bpf_object)");
    if env::var_os("CARGO_FEATURE_BPF").is_some() {
        match compile_bpf() {
            Ok(()) => println!("cargo::rustc-cfg=bpf_object"),
            Err(reason) => {
                println!(
                    "cargo::warning=joj is built {reason}: `joj trace` will capture through tracefs, `joj record` by a tracer"
                );
                println!("cargo::rustc-env=JOJ_NO_BPF={reason}");
            }
        }
    }
}
