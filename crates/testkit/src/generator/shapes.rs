//! Values of settings: for each shape, valid, invalid and borderline texts.

use super::random::Random;
use super::texts;

/// The shape of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    AccessLog,
    Address,
    Boolean,
    Domain,
    Duration,
    EnvJson,
    Headers,
    Inject,
    Integer,
    Iptables,
    LogFormat,
    LogLevel,
    Name,
    Networks,
    OpaquePorts,
    Path,
    Policy,
    Port,
    Ports,
    PullPolicy,
    Quantity,
    Ratio,
    Subnets,
    Switch,
    Unsigned,
    Version,
}

impl Shape {
    /// A text of the shape; in one case of eight, any text.
    pub fn text(self, random: &mut Random) -> String {
        match self {
            Self::Quantity if random.percent(40) => quantity(random),
            Self::Duration if random.percent(40) => duration(random),
            Self::OpaquePorts if random.percent(40) => ports(random),
            Self::Ratio if random.percent(30) => ratio(random),
            _ => texts::text(random, self.usual()),
        }
    }

    /// Selected texts.
    fn usual(self) -> &'static [&'static str] {
        match self {
            Self::AccessLog => &["apache", "json", ""],
            Self::Address => &["1.1.1.1:20001", "[fd00::1]:20001", "0.0.0.0:4140", ""],
            Self::Boolean => BOOLEANS,
            Self::Domain => &["cluster.local", "cluster.local", "example.org", "", "c.d."],
            Self::Duration => DURATIONS,
            Self::EnvJson => ENV_LISTS,
            Self::Headers => &["off", "off", "off", "insecure", "insecure", "", "on"],
            Self::Inject => INJECT,
            Self::Integer => INTEGERS,
            Self::Iptables => &["nft", "nft", "legacy", "legacy", "nft", "", "Nft", "plain"],
            Self::LogFormat => &["plain", "json", "", "on"],
            Self::LogLevel => LOG_LEVELS,
            Self::Name => &["cr.l5d.io/linkerd/proxy", "reg:5000/p", "a@sha256:00", "x", ""],
            Self::Networks => NETWORKS,
            Self::OpaquePorts => OPAQUE_PORTS,
            Self::Path => &["/run", "/", "", "/var/run/x y"],
            Self::Policy => POLICIES,
            Self::Port => PORTS,
            Self::Ports => &["22,8100-8102", "4567,4568", "", "5432", "a-b", "22,\"q\"", "1,"],
            Self::PullPolicy => &["Always", "IfNotPresent", "Never", "", "sometimes"],
            Self::Quantity => QUANTITIES,
            Self::Ratio => RATIOS,
            Self::Subnets => &["10.0.0.0/8", "10.0.0.0/8,192.168.0.0/16", "", "::1/128"],
            Self::Switch => &["enabled", "disabled", "enabled", "", "true", "Enabled", " enabled"],
            Self::Unsigned => UNSIGNED,
            Self::Version => &["edge-26.8.3", "stable-2.14.10", "v2.4.3", "", "1.10", "123"],
        }
    }
}

const BOOLEANS: &[&str] =
    &["true", "false", "1", "0", "t", "F", "TRUE", "False", "", "yes", "tRUE", " true", "enabled"];

const DURATIONS: &[&str] = &[
    "1s",
    "500ms",
    "1.001s",
    "1.005s",
    "1m30s",
    "6s5ms",
    "0",
    "+5s",
    "-1s",
    ".5s",
    "1h1m",
    "9223372036854775807ns",
    "2562047h47m16.854775807s",
    "2562047h47m16.854775808s",
    "-2562047h47m16.854775808s",
    "1µs",
    "1us",
    "1d",
    "5",
    "1e3s",
    "1s 2s",
    "s",
    ".s",
    "1.s",
    "",
];

const ENV_LISTS: &[&str] = &[
    r#"[{"name":"A","value":"1"}]"#,
    r#"[{"name":"A","value":"2"},{"name":"B","value":"b"},{"name":"A","value":"3"}]"#,
    r#"[{"name":"FIRST","value":"ns \" <&>"},{"value":"nameless"},{}]"#,
    r#"[{"name":"E","value":""},null]"#,
    r#"[{"NAME":"UP","Value":"case"}]"#,
    r#"[{"name":"R","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]"#,
    r#"[{"name":"R","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":null}}}]"#,
    r#"[{"name":"R","value":"v","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]"#,
    r#"[{"name":"R","valueFrom":{"resourceFieldRef":{"containerName":"c","divisor":"1500m"}}}]"#,
    r#"[{"name":"R","valueFrom":{"resourceFieldRef":{"resource":"x","divisor":1}}}]"#,
    r#"[{"name":"R","valueFrom":{"resourceFieldRef":{"resource":"x","divisor":" 1Ki "}}}]"#,
    r#"[{"name":"R","valueFrom":{"resourceFieldRef":{"divisor":"one"}}}]"#,
    r#"[{"name":"C","valueFrom":{"configMapKeyRef":{"name":"c","key":"k","optional":true}}}]"#,
    r#"[{"name":"S","valueFrom":{"secretKeyRef":{"key":"k"}}}]"#,
    r#"[{"name":"S","valueFrom":{"secretKeyRef":{"name":"","key":"k","optional":null}}}]"#,
    r#"[{"name":"S","valueFrom":{"secretKeyRef":{"key":"k","optional":"no"}}}]"#,
    r#"[{"name":"F","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"p","key":"k"}}}]"#,
    r#"[{"name":"V","valueFrom":{}},{"name":"W","valueFrom":null,"x":1}]"#,
    r#"[{"name":"T","value":true}]"#,
    r#"[{"name":1}]"#,
    r#"[{"name":"D","name":"E"}]"#,
    "[]",
    "null",
    "{}",
    "[1]",
    "[",
    "[] x",
    "",
];

const INJECT: &[&str] =
    &["enabled", "enabled", "enabled", "enabled", "ingress", "disabled", "", "true", "Enabled"];

const INTEGERS: &[&str] = &[
    "2102",
    "0",
    "-1",
    "1",
    "1000650000",
    "65534",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775296",
    "9223372036854775295",
    "9223372036854775294",
    "-9223372036854775808",
    "9223372036854775808",
    "+7",
    "007",
    "1e3",
    "1.0",
    "0x10",
    " 1",
    "1_000",
    "",
];

const LOG_LEVELS: &[&str] =
    &["warn,linkerd=info,hickory=error", "debug", "", "warn,\"x\"", "info,[{headers}]=off", "},]"];

const NETWORKS: &[&str] = &[
    "10.0.0.0/8,100.64.0.0/10,172.16.0.0/12,192.168.0.0/16,fd00::/8",
    "10.0.0.0/8",
    "10.0.0.0/8",
    ",10.0.0.0/8,",
    "",
    "0.0.0.0/0,::/0",
    "::ffff:1.2.3.4/96",
    "10.0.0.0/08",
    "10.0.0.0/33",
    "10.0.0.0",
    "10.0.0.0/8, 10.0.0.0/8",
    "10.0.0.0/8,,10.0.0.0/8",
    ",",
    "fe80::1%eth0/64",
    "010.0.0.0/8",
];

const OPAQUE_PORTS: &[&str] = &[
    "25,587,3306,4444,5432,6379,9300,11211",
    "3306",
    "80, 8080 ,http",
    "http,db",
    "http",
    "db,admin",
    "8100-8102",
    "80-80",
    "80-70",
    "+80",
    "00080",
    "80,",
    ",80",
    ",,",
    "80,,90",
    "65535",
    "65536",
    "-1",
    "1-2-3",
    "123-456",
    "0",
    "",
];

const POLICIES: &[&str] = &[
    "all-unauthenticated",
    "all-authenticated",
    "cluster-unauthenticated",
    "cluster-authenticated",
    "deny",
    "audit",
    "Deny",
    "none",
    "",
];

const PORTS: &[&str] = &[
    "4143",
    "4191",
    "1",
    "+4143",
    "-5",
    "04143",
    "65536",
    "1000000",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4143 ",
    "0x102f",
    "1e3",
    "http",
    "",
];

const QUANTITIES: &[&str] = &[
    "100m",
    "1",
    "0",
    "1001m",
    "1500m",
    "20Mi",
    "1.5Gi",
    "1Pi",
    "1Ei",
    "0.5Ki",
    "100Mi",
    "1Ti",
    "1e3",
    "1E3",
    "1E",
    "-1",
    "-1m",
    "+1",
    "1n",
    "0.1n",
    "9223372036854775807",
    "9223372036854775808",
    "999999999999999999",
    "1000000000000000000",
    "1e-10",
    "1.",
    ".5",
    ".",
    "1Mib",
    "1K",
    "1 ",
    "0x10",
    "many",
    "",
];

const RATIOS: &[&str] = &[
    "0.5",
    "0.10",
    "0.00001",
    "1e-5",
    "0",
    "1",
    "1.0",
    "-0.1",
    "2",
    "NaN",
    "inf",
    "0x1p-2",
    ".5",
    "5e-1",
    "1_0",
    "0,5",
    " 0.5",
    "1e-400",
    "4.9e-324",
    "0.9999999999999999999",
    "",
];

const UNSIGNED: &[&str] = &[
    "0",
    "0",
    "10",
    "300",
    "1000000",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "+1",
    "1.0",
    "",
];

/// Digits, a point and a suffix in any combination.
fn quantity(random: &mut Random) -> String {
    let sign = random.pick(&["", "", "", "-", "+"]);
    let whole = digits(random, 20);
    let fraction = match random.below(3) {
        0 => format!(".{}", digits(random, 12)),
        _ => String::new(),
    };
    let suffix = random.pick(&[
        "", "", "m", "u", "n", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
        "e3", "E-3", "e0", "e19", "e-9", "x", "mi",
    ]);
    format!("{sign}{whole}{fraction}{suffix}")
}

fn duration(random: &mut Random) -> String {
    let mut out = (random.pick(&["", "", "-", "+"])).to_owned();
    for _ in 0..random.between(1, 3) {
        out.push_str(&digits(random, 6));
        if random.percent(40) {
            out.push('.');
            out.push_str(&digits(random, 10));
        }
        out.push_str(random.pick(&["ns", "us", "µs", "ms", "s", "s", "m", "h", "d", ""]));
    }
    out
}

fn ports(random: &mut Random) -> String {
    let items = (0..random.between(1, 5)).map(|_| {
        let (one, other) = (random.below(70_000), random.below(70_000));
        match random.below(8) {
            0..3 => one.to_string(),
            3..5 => format!("{}-{}", one.min(other), one.max(other)),
            5 => format!(" {} ", random.pick(PORT_NAMES)),
            6 => format!("{one}-{other}"),
            _ => (random.pick(PORT_NAMES)).to_owned(),
        }
    });
    items.collect::<Vec<_>>().join(",")
}

fn ratio(random: &mut Random) -> String {
    let exponent = random.pick(&["", "", "e-3", "e0", "E-17", "e-300"]);
    format!("0.{}{exponent}", digits(random, 20))
}

/// Up to this many digits; rarely none.
fn digits(random: &mut Random, most: usize) -> String {
    let length = match random.below(10) {
        0 => 0,
        1 => most,
        _ => random.between(1, 4.min(most)),
    };
    let digit = |_| char::from(b'0' + u8::try_from(random.below(10)).expect("a digit must fit"));
    (0..length).map(digit).collect()
}

/// Names of ports, some of which look like numbers.
pub(super) const PORT_NAMES: &[&str] =
    &["http", "db", "admin", "http", "123-456", "80", "a b", "", "linkerd-proxy"];
