//! Instructions per byte of a request, counted by callgrind, for reviews that grow in one place
//! each (`crates/testkit/src/cost.rs`), for both meshes and sidecar templates. Fails if a review costs
//! more than its bytes allow.
//!
//! This program runs itself under valgrind once for each of the three and answers every review at both sizes;
//! only the answers are counted, with one dump for each. Without valgrind it prints a message and
//! exits. `COST_ONLY=TEXT` runs only the shapes with TEXT in their names; `COST_MESH=MESH` only those
//! of a mesh. Istio's templates are those of `$INJECTD_CORPUS`, else the small one of the tests.

use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use futures_util::FutureExt as _;

use injectd::{injector::Injector, mesh::Mesh, standalone::Standalone};
use injectd_testkit::cost::{self as shapes, Injectors, Shape, istio, templates};

/// How the cost of a mesh's reviews is bounded.
struct Bounds {
    mesh: &'static str,
    /// Bytes of the part that grows. The cost of a byte is that of the bytes between the two.
    sizes: [usize; 2],
    /// Maximum instructions per byte of a request.
    per_byte: u64,
    /// The cost of a review besides that.
    fixed: u64,
}

/// The sizes are what an API server allows for the annotations of a pod, and its largest request.
///
/// The most expensive bytes are those of a namespace's list of variables, which is read, merged,
/// written and quoted: 160 (3 MiB take 80 ms). Most bytes take less than 40. A review compiles a
/// template and reads lists of the maximum length (10,000 items).
const LINKERD: Bounds =
    Bounds { mesh: "linkerd", sizes: [256 << 10, 3 << 20], per_byte: 170, fixed: 6_000_000 };
/// The most expensive bytes are those of `proxyMetadata` with short names, each of which becomes a
/// variable of the proxy: 4,900, with the templates of 1.30 (256 KiB take half a second). Most bytes
/// take less than 1,000. The constant is for steps that each pod may take, `FLOOR_STEPS`.
const ISTIO: Bounds =
    Bounds { mesh: "istio", sizes: [128 << 10, 256 << 10], per_byte: 6_000, fixed: 200_000_000 };
/// Of the templates in `crates/testkit/src/cost/templates.yaml`, without answers that are kept. The most
/// expensive bytes are those of small containers, to each of which rules of three templates write: 4,850
/// (64 KiB take a tenth of a second). Most bytes take less than 500.
const TEMPLATES: Bounds =
    Bounds { mesh: "templates", sizes: [32 << 10, 64 << 10], per_byte: 6_000, fixed: 20_000_000 };

/// Environment variable that names the mesh: of the counted run, or the only one to count.
const MESH: &str = "COST_MESH";
/// Environment variable that is set in the counted run.
const COUNTED: &str = "COST_COUNTED";
/// Environment variable with a part of the names of the shapes to run.
const ONLY: &str = "COST_ONLY";
/// Environment variable with the folder of recordings.
const CORPUS: &str = "INJECTD_CORPUS";

fn main() -> ExitCode {
    let (only, mesh) = (variable(ONLY), variable(MESH));
    let is_counted = !variable(COUNTED).is_empty();
    if !is_counted && Command::new("valgrind").arg("--version").output().is_err() {
        print("cost: not run, there is no valgrind");
        return ExitCode::SUCCESS;
    }
    let mut is_over = false;
    for bounds in
        [LINKERD, ISTIO, TEMPLATES].into_iter().filter(|bounds| bounds.mesh.contains(&mesh))
    {
        let answers = Answers::of(bounds.mesh);
        let mut shapes = answers.shapes();
        shapes.retain(|shape| shape.name.contains(&only));
        if is_counted {
            answers.run(&shapes, bounds.sizes);
        } else {
            is_over |= bounds.are_passed(&shapes, &only);
        }
    }
    if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Bounds {
    /// Prints the cost of each shape; whether one is over.
    fn are_passed(&self, shapes: &[Shape], only: &str) -> bool {
        let totals = self.count(only);
        assert_eq!(totals.len(), shapes.len() * 2, "every review must be counted");
        print(&format!("{}\ninstructions  per byte  bytes    what grows", self.mesh));
        let (mut worst, mut is_over) = ((0, ""), false);
        for (shape, totals) in shapes.iter().zip(totals.chunks_exact(2)) {
            let bytes = self.sizes.map(|size| shape.grow(size).bytes() as u64);
            let per_byte = self.per_byte(totals, bytes);
            let mut both = totals.iter().zip(bytes);
            let is_this_over = per_byte > self.per_byte
                || both.any(|(total, bytes)| *total > self.fixed + self.per_byte * bytes);
            let mark = if is_this_over { "  OVER" } else { "" };
            print(&format!("{:12} {per_byte:8} {:8}  {}{mark}", totals[1], bytes[1], shape.name));
            worst = worst.max((per_byte, &shape.name));
            is_over |= is_this_over;
        }
        let (per_byte, name) = worst;
        print(&format!(
            "{}: at most {per_byte} instructions per byte ({name}), of {} allowed, besides {}",
            self.mesh, self.per_byte, self.fixed
        ));
        is_over
    }

    /// The instructions of each byte that the larger review has more. If a list is over its maximum
    /// length, the reviews are of about one size: then those of each byte.
    fn per_byte(&self, totals: &[u64], bytes: [u64; 2]) -> u64 {
        match bytes[1].saturating_sub(bytes[0]) {
            more if more >= bytes[0] / 2 => totals[1].saturating_sub(totals[0]).div_ceil(more),
            _ => totals[1].saturating_sub(self.fixed).div_ceil(bytes[1]),
        }
    }

    /// The instructions that callgrind counts for each review.
    fn count(&self, only: &str) -> Vec<u64> {
        let this = env::current_exe().expect("the path of the binary must be known");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost").join(self.mesh);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder of build results must be writable");
        let run = Command::new("valgrind")
            .arg("--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", folder.join("dump").display()))
            .args(["--toggle-collect=cost::counted", "--dump-after=cost::counted"])
            .arg(this)
            .env_clear()
            .envs([(COUNTED, "1"), (ONLY, only), (MESH, self.mesh)])
            .envs(env::vars_os().filter(|(name, _)| name == CORPUS))
            .stdout(Stdio::null())
            .output()
            .expect("valgrind must run");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        (1..).map_while(|index| total(&folder.join(format!("dump.{index}")))).collect()
    }
}

/// The total of a dump; `None` if it does not exist or is the last one, of the whole program.
fn total(dump: &Path) -> Option<u64> {
    let dump = fs::read_to_string(dump).ok()?;
    let total = dump.lines().find_map(|line| line.strip_prefix("totals: "))?;
    total.trim().parse().ok()
}

/// What answers the reviews of a mesh.
enum Answers {
    Linkerd(Injectors),
    Istio(istio::Configuration),
    Templates,
}

impl Answers {
    fn of(mesh: &str) -> Self {
        if mesh == ISTIO.mesh {
            Self::Istio(istio::Configuration::find())
        } else if mesh == TEMPLATES.mesh {
            Self::Templates
        } else {
            Self::Linkerd(Injectors::default())
        }
    }

    fn shapes(&self) -> Vec<Shape> {
        match self {
            Self::Linkerd(_) => shapes::all(),
            Self::Istio(configuration) => configuration.shapes(),
            Self::Templates => templates::shapes(),
        }
    }

    fn run(&self, shapes: &[Shape], sizes: [usize; 2]) {
        for grown in shapes.iter().flat_map(|shape| sizes.map(|size| shape.grow(size))) {
            match self {
                Self::Linkerd(injectors) => grown.with(injectors, answer),
                Self::Istio(configuration) => {
                    answer(&configuration.injector(), grown.body.as_bytes());
                }
                Self::Templates => answer(&templates::injector(&grown), grown.body.as_bytes()),
            }
        }
    }
}

fn answer<M: Mesh>(injector: &Injector<M, Standalone>, body: &[u8]) {
    counted(&|| injector.review(body).now_or_never().expect("must not wait").is_ok());
}

#[inline(never)]
fn counted(answer: &dyn Fn() -> bool) {
    std::hint::black_box(answer());
}

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn print(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
