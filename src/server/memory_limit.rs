//! The memory limit of the container: that of the process's control group, or of one above it, or a
//! limit of the process's data.

use std::{fs, path::Path};

use rustix::process::{Resource, getrlimit};

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// What the kernel gives for "no limit" in version 1 is the largest multiple of a page; no machine has
/// half of it.
const NO_LIMIT: u64 = 1 << 60;

/// The smallest memory limit, in bytes; `None` without one.
pub(super) fn memory_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_process = getrlimit(Resource::Data).current;
    [limit_of(&groups, Path::new(ROOT)), of_process].into_iter().flatten().min()
}

/// Each line is `NUMBER:CONTROLLERS:PATH`; version 2 has one line without controllers. In a container
/// the path may be that of the host, where it leads nowhere; the root is the container's then.
fn limit_of(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next());
        let (top, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = Path::new(path.unwrap_or_default().trim_start_matches('/'));
        let read = |group: &Path| fs::read_to_string(top.join(group).join(file)).ok();
        // Version 2 writes `max` for no limit, which is no number.
        let limit = |text: String| text.trim().parse::<u64>().ok();
        // The limit of a group above, such as the pod's, ends the process as well.
        group.ancestors().filter_map(read).filter_map(limit).collect()
    });
    limits.filter(|&limit| limit < NO_LIMIT).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_a_group_and_those_above_applies() {
        let root = std::env::temp_dir().join(format!("injectd-cgroup-{}", std::process::id()));
        for (file, text) in [
            ("memory.max", "max\n"),
            ("pods/memory.max", "1000\n"),
            ("pods/own/memory.max", "2000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/own/memory.limit_in_bytes", "700\n"),
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("must be made");
            fs::write(path, text).expect("must be written");
        }
        for (groups, limit) in [
            ("0::/pods/own\n", Some(1000)),
            ("0::/../gone\n", None),
            ("0::/\n", None),
            ("", None),
            ("5:cpu,cpuacct:/own\n", None),
            ("5:cpu:/own\n4:memory:/own\n", Some(700)),
            ("4:hugetlb,memory:/of/the/host\n0::/pods\n", Some(1000)),
        ] {
            assert_eq!(limit_of(groups, &root), limit, "{groups:?}");
        }
        fs::remove_dir_all(root).expect("must be removed");
    }
}
