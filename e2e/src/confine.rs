//! A container's first process: `confine start ROOT UID GID INSIDE=OUTSIDE… -- PROGRAM ARGUMENT…`.
//!
//! Starts a program as a kubelet does: a read-only root with nothing but these files and folders, a user
//! without capabilities. Without the seccomp profile and memory limits. It runs in a mount and process
//! namespace of its own.
//!
//! `confine try ROOT UID GID` prints how many files and folders there are below a root, and those that
//! this user can write.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::{
    process::chroot,
    thread::{
        CapabilitySet, Gid, Uid, remove_capability_from_bounding_set, set_no_new_privs,
        set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed output must not hide the exit code.
            let _ = writeln!(io::stderr(), "confine: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> io::Result<()> {
    let [what, root, uid, gid, rest @ ..] = arguments else {
        return Err(io::Error::other("usage: confine start|try ROOT UID GID …"));
    };
    let root = Path::new(root);
    let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
    let (uid, gid) = (number(uid)?, number(gid)?);
    if what == "try" {
        enter(root)?;
        if uid != 0 {
            drop_privileges(uid, gid)?;
        }
        return print_writable();
    }
    let mut parts = rest.splitn(2, |argument| argument == "--");
    let binds = parts.next().unwrap_or_default();
    let Some([program, arguments @ ..]) = parts.next() else {
        return Err(io::Error::other("no program"));
    };
    mount_root(root, binds)?;
    enter(root)?;
    drop_privileges(uid, gid)?;
    Err(Command::new(program).args(arguments).exec())
}

fn enter(root: &Path) -> io::Result<()> {
    chroot(root)?;
    env::set_current_dir("/")
}

/// Of this thread, which becomes the program.
fn drop_privileges(uid: u32, gid: u32) -> io::Result<()> {
    let last: u32 = fs::read_to_string("/proc/sys/kernel/cap_last_cap")?
        .trim()
        .parse()
        .map_err(io::Error::other)?;
    for number in 0..=last {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        remove_capability_from_bounding_set(capability)?;
    }
    set_no_new_privs(true)?;
    set_thread_groups(&[])?;
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

fn mount_root(root: &Path, binds: &[String]) -> io::Result<()> {
    mount(&["-t", "tmpfs", "-o", "mode=755", "tmpfs"], root)?;
    for bind in binds {
        let (inside, outside) =
            bind.split_once('=').ok_or_else(|| io::Error::other(format!("no = in {bind}")))?;
        let target = root.join(inside.trim_start_matches('/'));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        if Path::new(outside).is_dir() {
            fs::create_dir_all(&target)?;
        } else {
            File::create(&target)?;
        }
        mount(&["--bind", outside], &target)?;
        mount(&["-o", "remount,bind,ro,nosuid,nodev"], &target)?;
    }
    let proc = root.join("proc");
    fs::create_dir(&proc)?;
    mount(&["-t", "proc", "-o", "ro,nosuid,nodev,noexec", "proc"], &proc)?;
    mount(&["-o", "remount,ro,nosuid,nodev"], root)
}

fn mount(arguments: &[&str], target: &Path) -> io::Result<()> {
    let status = Command::new("mount").args(arguments).arg(target).status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("mount {arguments:?} {}: {status}", target.display())))
}

/// Tries each file and folder except the kernel's `/proc`.
fn print_writable() -> io::Result<()> {
    let (mut tried, mut written) = (0, Vec::new());
    let mut folders = vec![Path::new("/").to_owned()];
    while let Some(folder) = folders.pop() {
        let new = folder.join(".try");
        tried += 1;
        if OpenOptions::new().write(true).create_new(true).open(&new).is_ok() {
            written.push(new);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.extend((path != Path::new("/proc")).then_some(path));
                continue;
            }
            tried += 1;
            if OpenOptions::new().append(true).open(&path).is_ok() {
                written.push(path);
            }
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{tried}")?;
    written.iter().try_for_each(|path| writeln!(out, "{}", path.display()))
}
