//! Tables of the figures: medians of rounds, and ratios and differences within a round.

use injectd_harness::expect::{Outcome, failed};

use super::ways::Way;
use crate::report::{Budget, Report, Table, count, float, median};

const SHOWN: [Way; 8] = [
    Way::Nothing,
    Way::Again,
    Way::Policy,
    Way::Injectd,
    Way::TemplatePolicy,
    Way::Template,
    Way::Allowed,
    Way::Complete,
];
/// Ways of injectd beside policies with the same effect.
const PAIRS: [[Way; 2]; 2] = [[Way::Injectd, Way::Policy], [Way::Template, Way::TemplatePolicy]];
/// A template beside Linkerd's sidecar, and the noise.
const BESIDE: [[Way; 2]; 2] = [[Way::Template, Way::Injectd], [Way::Again, Way::Nothing]];
pub(super) const COLUMNS: [&str; 10] = [
    "round",
    "creators",
    "way",
    "pods",
    "seconds",
    "apiserver_cpu",
    "injector_cpu",
    "etcd_cpu",
    "client_cpu",
    "connections",
];
const SETTING: [&str; 6] = ["rounds", "s per run", "pods", "a pod", "with sidecar", "client CPU"];
const COSTS: [&str; 7] =
    ["way", "pods/s (min–max)", "API server", "injector", "both (min–max)", "÷ no sidecar", "etcd"];
const RATIOS: [&str; 4] = ["ratio (min–max)", "CPU of both", "CPU of the API server", "pods/s"];
const READING: &str = "A pod injected by injectd equals a pod injected by the policy: both were \
    compared. The policy is made from injectd's answer for this pod, so the values that injectd \
    computes (labels, ports, settings) are constants in it. Figures are medians of rounds, CPU in ms \
    per pod; those of injector, etcd and client are means. Ratios and differences are within a round.";

/// CPU in seconds: a place for each process.
pub(super) type Cpu = [f64; 4];
const API_SERVER: usize = 0;
pub(super) const INJECTOR: usize = 1;
const ETCD: usize = 2;
const CLIENT: usize = 3;

/// One way in one round, with all of its pods.
pub(super) struct Row {
    pub(super) round: u32,
    pub(super) creators: u8,
    pub(super) way: Way,
    pub(super) pods: u32,
    pub(super) seconds: f64,
    pub(super) cpu: Cpu,
    /// Those that the API server opened to injectd.
    pub(super) connections: u64,
}

type Figure = fn(&Row) -> f64;

impl Row {
    pub(super) fn cells(&self) -> Vec<String> {
        let way = self.way.namespace().to_owned();
        let mut cells = vec![self.round.to_string(), self.creators.to_string(), way];
        cells.extend([self.pods.to_string(), self.seconds.to_string()]);
        cells.extend(self.cpu.map(|seconds| seconds.to_string()));
        cells.push(self.connections.to_string());
        cells
    }

    fn rate(&self) -> f64 {
        float(self.pods) / self.seconds
    }

    /// CPU of the API server in ms per pod.
    fn server(&self) -> f64 {
        self.cpu[API_SERVER] / float(self.pods) * 1000.0
    }

    /// CPU of the API server and the injector in ms per pod.
    fn total(&self) -> f64 {
        self.server() + self.cpu[INJECTOR] / float(self.pods) * 1000.0
    }
}

/// What was measured besides the rows.
pub(super) struct Extent {
    /// Length of a run.
    pub(super) seconds: f64,
    /// Bytes of a stored pod, without sidecar and with.
    pub(super) sizes: [usize; 2],
}

pub(super) fn add_results(report: &mut Report, rows: &[Row], extent: &Extent) -> Outcome {
    let mut levels: Vec<Level<'_>> = Vec::new();
    for row in rows {
        match levels.iter_mut().find(|level| level.creators == row.creators) {
            Some(level) => level.rows.push(row),
            None => levels.push(Level { creators: row.creators, rows: vec![row] }),
        }
    }
    report.table(setting(rows, extent));
    for level in &levels {
        report.table(level.costs()?);
        report.table(level.ratios()?);
    }
    report.table(parts(&levels)?);
    for level in &levels {
        for pair in PAIRS {
            report.budget(level.budget(pair)?);
        }
    }
    Ok(())
}

fn setting(rows: &[Row], extent: &Extent) -> Table {
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or_default().to_string();
    let pods = count(rows.iter().map(|row| row.pods).sum::<u32>());
    let [plain, injected] = extent.sizes.map(|bytes| format!("{:.0} KB", float(bytes) / 1000.0));
    let client = format!("{:.2}", per_pod(rows, |row| row.cpu[CLIENT] * 1000.0));
    let row = vec![rounds, extent.seconds.to_string(), pods, plain, injected, client];
    Table::new("A sidecar through the API server", &SETTING, [row]).note(READING)
}

/// All rounds with one number of creators.
struct Level<'a> {
    creators: u8,
    rows: Vec<&'a Row>,
}

impl Level<'_> {
    fn costs(&self) -> Outcome<Table> {
        let shown = SHOWN.into_iter().filter(|&way| self.has(way));
        let rows: Outcome<Vec<_>> = shown.map(|way| self.cost(way)).collect();
        Ok(Table::new(format!("{} at a time", self.creators), &COSTS, rows?))
    }

    fn cost(&self, way: Way) -> Outcome<Vec<String>> {
        Ok(vec![
            way.title().to_owned(),
            spread(self.of(way).map(Row::rate), 0)?,
            format!("{:.2}", median(self.of(way).map(Row::server))?),
            format!("{:.3}", self.mean(way, INJECTOR)),
            spread(self.of(way).map(Row::total), 2)?,
            format!("{:.2}", median(self.compared(way, Way::Nothing, Row::total))?),
            format!("{:.2}", self.mean(way, ETCD)),
        ])
    }

    fn ratios(&self) -> Outcome<Table> {
        let figures: [Figure; 3] = [Row::total, Row::server, Row::rate];
        let mut rows = Vec::new();
        for [one, other] in PAIRS.into_iter().chain(BESIDE) {
            let mut row = vec![format!("{} ÷ {}", one.title(), other.title())];
            for figure in figures {
                row.push(spread(self.compared(one, other, figure), 2)?);
            }
            rows.push(row);
        }
        Ok(Table::new(format!("{} at a time, ratios", self.creators), &RATIOS, rows))
    }

    fn of(&self, way: Way) -> impl Iterator<Item = &Row> {
        self.rows.iter().copied().filter(move |row| row.way == way)
    }

    fn has(&self, way: Way) -> bool {
        self.of(way).next().is_some()
    }

    fn compared(&self, one: Way, other: Way, figure: Figure) -> impl Iterator<Item = f64> {
        self.of(one).zip(self.of(other)).map(move |(one, other)| figure(one) / figure(other))
    }

    /// CPU of a process in ms per pod, over all rounds: a clock tick is the CPU of a hundred pods.
    fn mean(&self, way: Way, process: usize) -> f64 {
        per_pod(self.of(way), |row| row.cpu[process] * 1000.0)
    }

    /// The additional CPU of the API server in ms per pod, as a cell.
    fn more(&self, one: Way, other: Way) -> Outcome<String> {
        let pairs = self.of(one).zip(self.of(other));
        let differences = pairs.map(|(one, other)| one.server() - other.server());
        Ok(format!("{:.2}", median(differences)?))
    }

    fn budget(&self, [one, other]: [Way; 2]) -> Outcome<Budget> {
        let found = median(self.compared(one, other, Row::total))?;
        // The ratio of a way to itself in the worst round.
        let itself = self.compared(Way::Again, Way::Nothing, Row::total);
        let noise = itself.map(|ratio| ratio.max(1.0 / ratio)).fold(1.0, f64::max);
        let is_noise = found > 1.0 && found <= noise;
        let missed = if is_noise { ": missed by less than the noise" } else { "" };
        let (one, other) = (one.title(), other.title());
        let who = format!("CPU of API server and injector, {one} ÷ {other}");
        let budget = Budget::most(format!("{who}, {} at a time", self.creators), found, 1.0);
        let title = Way::Nothing.title();
        Ok(budget.decimals(2).baseline(format!("{title} ÷ itself: up to {noise:.2}{missed}")))
    }

    /// Connections that the API server opened to injectd per 1,000 pods.
    fn opened(&self) -> String {
        let opened = per_pod(self.of(Way::Injectd), |row| float(row.connections) * 1000.0);
        format!("{opened:.0} with {}", self.creators)
    }
}

/// Differences between ways, for the level at which all were measured.
fn parts(levels: &[Level<'_>]) -> Outcome<Table> {
    let level = levels.iter().find(|level| level.has(Way::Allowed));
    let level = level.ok_or_else(|| failed("no round has all ways"))?;
    let (call, itself) =
        (level.more(Way::Allowed, Way::Nothing)?, level.mean(Way::Injectd, INJECTOR));
    let others = [level.more(Way::Injectd, Way::Allowed)?, level.more(Way::Policy, Way::Nothing)?];
    let sidecar = level.more(Way::Complete, Way::Nothing)?;
    let rows = [
        ("API server: the call of a webhook that only allows", [call, String::new()]),
        ("API server: all other work that a pod without sidecar does not need", others),
        ("of that, if the request already has the sidecar", [sidecar.clone(), sidecar]),
        ("injectd itself", [format!("{itself:.2}"), String::new()]),
    ];
    let rows = rows.map(|(what, cells)| [what.to_owned()].into_iter().chain(cells).collect());
    let first = format!("CPU in ms per pod, {} at a time", level.creators);
    let opened: Vec<_> = levels.iter().map(Level::opened).collect();
    let opened = format!(
        "Connections that the API server opened to injectd per 1,000 pods: {} at a time.",
        opened.join(", ")
    );
    Ok(Table::new("Parts of the cost", &[&first, "injectd", "policy"], rows).note(opened))
}

fn spread(values: impl Iterator<Item = f64>, digits: usize) -> Outcome<String> {
    let values: Vec<_> = values.collect();
    let [least, most] = [f64::min, f64::max].map(|of| values.iter().copied().reduce(of));
    let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
    Ok(format!("{:.digits$} ({least:.digits$}–{most:.digits$})", median(values)?))
}

/// The mean of a figure, pods counted alike.
fn per_pod<'a>(rows: impl IntoIterator<Item = &'a Row>, figure: impl Fn(&Row) -> f64) -> f64 {
    let (mut sum, mut pods) = (0.0, 0.0);
    for row in rows {
        sum += figure(row);
        pods += float(row.pods);
    }
    sum / pods
}
