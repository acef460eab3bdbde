//! The functions that an API server of Kubernetes 1.36 declares for match conditions, with their
//! types: those of CEL's standard library and of `k8s.io/apiserver/pkg/cel/environment`.
//!
//! Each line is a function and its overloads, `(ARGUMENTS)RESULT`; a dot before the name means that
//! the first argument is the one before the dot of the call. `A` and `B` are any types, the same
//! wherever they stand.

use std::{collections::HashMap, sync::LazyLock};

use super::types::Type;

const FUNCTIONS: &str = "
!_ (bool)bool
-_ (double)double (int)int
_&&_ (bool,bool)bool
_||_ (bool,bool)bool
_?_:_ (bool,A,A)A
@not_strictly_false (bool)bool
_==_ (A,A)bool
_!=_ (A,A)bool
_<_ ORDER
_<=_ ORDER
_>_ ORDER
_>=_ ORDER
_+_ (bytes,bytes)bytes (double,double)double (duration,duration)duration (duration,timestamp)timestamp (timestamp,duration)timestamp (int,int)int (list<A>,list<A>)list<A> (string,string)string (uint,uint)uint
_-_ (double,double)double (duration,duration)duration (int,int)int (timestamp,duration)timestamp (timestamp,timestamp)duration (uint,uint)uint
_*_ (double,double)double (int,int)int (uint,uint)uint
_/_ (double,double)double (int,int)int (uint,uint)uint
_%_ (int,int)int (uint,uint)uint
@in (A,list<A>)bool (A,map<A,B>)bool
_[_] (list<A>,int)A (map<A,B>,A)B (optional<list<A>>,int)optional<A> (optional<map<A,B>>,A)optional<B>
_[?_] (list<A>,int)optional<A> (map<A,B>,A)optional<B> (optional<list<A>>,int)optional<A> (optional<map<A,B>>,A)optional<B>
size (bytes)int (list<A>)int (map<A,B>)int (string)int
.size (bytes)int (list<A>)int (map<A,B>)int (string)int
bool (bool)bool (string)bool
bytes (bytes)bytes (string)bytes
double (double)double (int)double (uint)double (string)double
int (int)int (double)int (duration)int (string)int (timestamp)int (uint)int
uint (uint)uint (double)uint (int)uint (string)uint
string (string)string (bool)string (int)string (uint)string (double)string (bytes)string (timestamp)string (duration)string (ip)string (cidr)string
timestamp (timestamp)timestamp (string)timestamp (int)timestamp
duration (duration)duration (string)duration (int)duration
dyn (A)dyn
type (A)type<A>
matches (string,string)bool
.matches (string,string)bool
.contains (string,string)bool
.startsWith (string,string)bool
.endsWith (string,string)bool
.getFullYear DATE
.getMonth DATE
.getDayOfYear DATE
.getDayOfMonth DATE
.getDayOfWeek DATE
.getDate DATE
.getHours DATE (duration)int
.getMinutes DATE (duration)int
.getSeconds DATE (duration)int
.getMilliseconds DATE (duration)int
.charAt (string,int)string
.indexOf (list<A>,A)int (string,string)int (string,string,int)int
.lastIndexOf (list<A>,A)int (string,string)int (string,string,int)int
.join (list<string>)string (list<string>,string)string
.lowerAscii (string)string
.upperAscii (string)string
.replace (string,string,string)string (string,string,string,int)string
.split (string,string)list<string> (string,string,int)list<string>
.substring (string,int)string (string,int,int)string
.trim (string)string
.format (string,list<dyn>)string
strings.quote (string)string
.find (string,string)string
.findAll (string,string)list<string> (string,string,int)list<string>
sets.contains (list<A>,list<A>)bool
sets.equivalent (list<A>,list<A>)bool
sets.intersects (list<A>,list<A>)bool
.isSorted (list<int>)bool (list<uint>)bool (list<double>)bool (list<bool>)bool (list<string>)bool (list<bytes>)bool (list<timestamp>)bool (list<duration>)bool
.sum (list<int>)int (list<uint>)uint (list<double>)double (list<duration>)duration
.min LEAST
.max LEAST
lists.range (int)list<int>
.slice (list<A>,int,int)list<A>
.flatten (list<list<A>>)list<A> (list<dyn>,int)list<dyn>
.distinct (list<A>)list<A>
.reverse (list<A>)list<A>
.sort (list<int>)list<int> (list<uint>)list<uint> (list<double>)list<double> (list<bool>)list<bool> (list<string>)list<string> (list<bytes>)list<bytes> (list<timestamp>)list<timestamp> (list<duration>)list<duration>
.@sortByAssociatedKeys (list<A>,list<int>)list<A> (list<A>,list<uint>)list<A> (list<A>,list<double>)list<A> (list<A>,list<bool>)list<A> (list<A>,list<string>)list<A> (list<A>,list<bytes>)list<A> (list<A>,list<timestamp>)list<A> (list<A>,list<duration>)list<A>
cel.@mapInsert (map<A,B>,A,B)map<A,B> (map<A,B>,map<A,B>)map<A,B>
.first (list<A>)optional<A>
.last (list<A>)optional<A>
optional.of (A)optional<A>
optional.ofNonZeroValue (A)optional<A>
optional.none ()optional<A>
optional.unwrap (list<optional<A>>)list<A>
.unwrapOpt (list<optional<A>>)list<A>
.hasValue (optional<A>)bool
.value (optional<A>)A
.or (optional<A>,optional<A>)optional<A>
.orValue (optional<A>,A)A
url (string)url
isURL (string)bool
.getScheme (url)string
.getHost (url)string
.getHostname (url)string
.getPort (url)string
.getEscapedPath (url)string
.getQuery (url)map<string,list<string>>
ip (string)ip
.ip (cidr)ip
isIP (string)bool
ip.isCanonical (string)bool
.family (ip)int
.isUnspecified (ip)bool
.isLoopback (ip)bool
.isLinkLocalMulticast (ip)bool
.isLinkLocalUnicast (ip)bool
.isGlobalUnicast (ip)bool
cidr (string)cidr
isCIDR (string)bool
.containsIP (cidr,string)bool (cidr,ip)bool
.containsCIDR (cidr,string)bool (cidr,cidr)bool
.prefixLength (cidr)int
.masked (cidr)cidr
quantity (string)quantity
isQuantity (string)bool
sign (quantity)int
.isGreaterThan (quantity,quantity)bool (semver,semver)bool
.isLessThan (quantity,quantity)bool (semver,semver)bool
.compareTo (quantity,quantity)int (semver,semver)int
.asApproximateFloat (quantity)double
.asInteger (quantity)int
.isInteger (quantity)bool
.add (quantity,quantity)quantity (quantity,int)quantity
.sub (quantity,quantity)quantity (quantity,int)quantity
semver (string)semver (string,bool)semver
isSemver (string)bool (string,bool)bool
.major (semver)int
.minor (semver)int
.patch (semver)int
format.named (string)optional<format>
format.dns1123Label ()format
format.dns1123Subdomain ()format
format.dns1035Label ()format
format.qualifiedName ()format
format.dns1123LabelPrefix ()format
format.dns1123SubdomainPrefix ()format
format.dns1035LabelPrefix ()format
format.labelValue ()format
format.uri ()format
format.uuid ()format
format.byte ()format
format.date ()format
format.datetime ()format
.validate (format,string)optional<list<string>>
.path (authorizer,string)path
.group (authorizer,string)group
.serviceAccount (authorizer,string,string)authorizer
.resource (group,string)check
.subresource (check,string)check
.namespace (check,string)check
.name (check,string)check
.fieldSelector (check,string)check
.labelSelector (check,string)check
.check (path,string)decision (check,string)decision
.errored (decision)bool
.error (decision)string
.allowed (decision)bool
.reason (decision)string
";
/// The functions of sidecar templates. The parser adds the first three arguments of `freePorts`.
const OF_TEMPLATES: &str = "
env (Container,string)Variable
mount (Container,string)optional<VolumeMount>
appended (string,string,string)string
freePorts (Pod,list<string>,list<int>,int,int)list<int>
toJson (dyn)string
fromJson (string)dyn
base64 (string)string (bytes)string
sha256 (string)string (bytes)string
dirname (string)string
image (string)Image
keys (map<A,B>)list<A>
merge (map<A,B>,map<A,B>)map<A,B>
dnsName (string,int)string
sum (list<quantity>)quantity
max (list<quantity>)quantity
min (list<quantity>)quantity
scale (quantity,int)quantity (quantity,double)quantity
";
const ORDER: &str = "(bool,bool)bool (int,int)bool (int,double)bool (int,uint)bool (uint,uint)bool \
    (uint,double)bool (uint,int)bool (double,double)bool (double,int)bool (double,uint)bool \
    (string,string)bool (bytes,bytes)bool (timestamp,timestamp)bool (duration,duration)bool";
const LEAST: &str = "(list<int>)int (list<uint>)uint (list<double>)double (list<bool>)bool \
    (list<string>)string (list<bytes>)bytes (list<timestamp>)timestamp (list<duration>)duration";
const DATE: &str = "(timestamp)int (timestamp,string)int";
/// An overload of a function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overload {
    pub(crate) parameters: Vec<Type>,
    pub(super) result: Type,
}

type Table = HashMap<&'static str, Vec<Overload>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| table(FUNCTIONS));
static TABLE_OF_TEMPLATES: LazyLock<Table> = LazyLock::new(|| table(OF_TEMPLATES));

/// The overloads of a function; `None` if it is not declared.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    TABLE.get(name).map(Vec::as_slice)
}

/// The same, of the functions of sidecar templates.
pub(super) fn overloads_of_templates(name: &str) -> Option<&'static [Overload]> {
    TABLE_OF_TEMPLATES.get(name).map(Vec::as_slice)
}

fn table(functions: &'static str) -> Table {
    let lines = functions.lines().filter_map(|line| line.split_once(' '));
    let of_line = |(name, overloads): (&'static str, &'static str)| {
        let words = overloads.split(' ').flat_map(|word| match word {
            "ORDER" => ORDER.split_whitespace(),
            "DATE" => DATE.split_whitespace(),
            "LEAST" => LEAST.split_whitespace(),
            word => word.split_whitespace(),
        });
        (name, words.filter_map(overload).collect())
    };
    lines.map(of_line).collect()
}

impl Overload {
    pub(crate) fn result(&self) -> &Type {
        &self.result
    }
}

/// All functions with their overloads.
#[cfg(test)]
pub(crate) fn declared() -> &'static HashMap<&'static str, Vec<Overload>> {
    &TABLE
}

fn overload(text: &'static str) -> Option<Overload> {
    let (arguments, result) = text.strip_prefix('(')?.split_once(')')?;
    Some(Overload { parameters: Type::list(arguments), result: Type::read(result) })
}

/// The functions that make lists, maps or optionals, and those that take one element out of a list:
/// a test of `injectd-webhooks` has an expression for each.
pub fn making() -> impl Iterator<Item = &'static str> {
    let makes = |text: &str| {
        let is_element = text.starts_with(".min ") || text.starts_with(".max ");
        is_element || [")list<", ")map<", ")optional<"].iter().any(|result| text.contains(result))
    };
    let lines = FUNCTIONS.lines().filter(move |line| makes(line));
    // The operator of indexes itself is what the others are tried with.
    lines.filter_map(|line| Some(line.split_once(' ')?.0)).filter(|name| *name != "_[_]")
}
