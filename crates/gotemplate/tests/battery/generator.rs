//! Random templates from a seed: expressions of functions, values and control structures, some of
//! which are errors.

/// A generator of numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

const ATOMS: &[&str] = &[
    "1", "0", "-2", "7", "100", "1.5", "1e3", "0x1f", "'a'", "\"\"", "\"a\"", "\"héllo\"",
    "\"A b-c_d\"", "\"12\"", "\"0x1f\"", "\"1.50\"", "\"a,b,c\"", "`raw \\n`", "true", "false", "nil", ".",
    "$", ".name", ".n", ".big", ".f", ".neg", ".zero", ".small", ".t", ".nil", ".empty", ".list",
    ".nums", ".mixed", ".elist", ".emap", ".map", ".map.a", ".map.b", ".map.b.c", ".map.b.n",
    ".map.z", ".missing", ".missing.deep", ".map.b.n.x", ".name.x", ".people", ".text", ".words",
    ".camel", ".uni", ".html", ".json", ".num", ".oct", ".csv", "$v", "$w", "(list)", "(dict)",
    "(list 1 \"a\" nil)", "(dict \"k\" 1 \"l\" (list 1 2))", "(splitList \",\" .csv)", "(until 3)",
];

/// Functions and how many arguments they take.
const FUNCTIONS: &[(&str, usize)] = &[
    ("add", 2), ("add1", 1), ("sub", 2), ("mul", 3), ("div", 2), ("mod", 2), ("max", 2), ("min", 3),
    ("maxf", 2), ("minf", 2), ("floor", 1), ("ceil", 1), ("round", 2), ("int", 1), ("int64", 1),
    ("float64", 1), ("atoi", 1), ("toDecimal", 1), ("until", 1), ("untilStep", 3), ("seq", 2),
    ("seq", 3), ("upper", 1), ("lower", 1), ("title", 1), ("untitle", 1), ("swapcase", 1),
    ("initials", 1), ("trim", 1), ("trimAll", 2), ("trimPrefix", 2), ("trimSuffix", 2),
    ("nospace", 1), ("abbrev", 2), ("abbrevboth", 3), ("repeat", 2), ("substr", 3), ("trunc", 2),
    ("contains", 2), ("hasPrefix", 2), ("hasSuffix", 2), ("quote", 2), ("squote", 2), ("cat", 3),
    ("indent", 2), ("nindent", 2), ("replace", 3), ("plural", 3), ("wrap", 2), ("wrapWith", 3),
    ("join", 2), ("sortAlpha", 1), ("split", 2), ("splitList", 2), ("splitn", 3), ("toString", 1),
    ("toStrings", 1), ("default", 2), ("empty", 1), ("coalesce", 3), ("all", 2), ("any", 2),
    ("ternary", 3), ("list", 3), ("append", 2), ("prepend", 2), ("concat", 2), ("first", 1),
    ("last", 1), ("rest", 1), ("initial", 1), ("reverse", 1), ("uniq", 1), ("without", 2),
    ("has", 2), ("compact", 1), ("slice", 2), ("slice", 3), ("chunk", 2), ("dict", 2), ("dict", 3),
    ("get", 2), ("set", 3), ("unset", 2), ("hasKey", 2), ("pluck", 2), ("pick", 2), ("omit", 2),
    ("merge", 2), ("mergeOverwrite", 2), ("dig", 3), ("dig", 4), ("values", 1), ("deepCopy", 1),
    ("typeOf", 1), ("kindOf", 1), ("typeIs", 2), ("kindIs", 2), ("deepEqual", 2), ("eq", 2),
    ("eq", 3), ("ne", 2), ("lt", 2), ("le", 2), ("gt", 2), ("ge", 2), ("and", 2), ("or", 3),
    ("not", 1), ("len", 1), ("index", 2), ("index", 3), ("print", 3), ("println", 2), ("html", 1),
    ("js", 1), ("urlquery", 1), ("printf \"%v\"", 1), ("printf \"%d\"", 1), ("printf \"%s|%q\"", 2),
    ("printf \"%6.2f\"", 1), ("printf \"%-8v|\"", 1), ("printf \"%x\"", 1), ("printf \"%#v\"", 1),
    ("printf \"%T\"", 1), ("printf \"%05d\"", 1), ("printf \"%+v %v\"", 3), ("printf \"%t\"", 1),
    ("printf \"%[2]v %[1]v\"", 2), ("printf \"%g\"", 1), ("printf \"%e\"", 1), ("printf \"%c\"", 1),
    ("b64enc", 1), ("b64dec", 1), ("b32enc", 1), ("b32dec", 1), ("sha1sum", 1), ("sha256sum", 1),
    ("adler32sum", 1), ("toJson", 1), ("toPrettyJson", 1), ("toRawJson", 1), ("fromJson", 1),
    ("mustToJson", 1), ("mustFromJson", 1), ("base", 1), ("dir", 1), ("clean", 1), ("ext", 1),
    ("isAbs", 1), ("camelcase", 1), ("snakecase", 1), ("kebabcase", 1), ("addf", 2), ("subf", 2),
    ("mulf", 2), ("divf", 2), ("duration", 1), ("durationRound", 1), ("semverCompare", 2),
    ("regexMatch", 2), ("fail", 1),
];

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(4) == 0 {
        return random.pick(ATOMS).to_owned();
    }
    format!("({})", call(random, depth - 1))
}

fn call(random: &mut Random, depth: usize) -> String {
    let (name, count) = FUNCTIONS[random.below(FUNCTIONS.len())];
    let count = if random.below(40) == 0 { count + 1 } else { count };
    let mut text = name.to_owned();
    let piped = random.below(4) == 0 && count > 0;
    let arguments = if piped { count - 1 } else { count };
    for _ in 0..arguments {
        text += " ";
        text += &expression(random, depth);
    }
    if piped { format!("{} | {text}", expression(random, depth)) } else { text }
}

fn node(random: &mut Random, depth: usize) -> String {
    let pipe = |random: &mut Random| call(random, 2);
    match random.below(if depth == 0 { 3 } else { 10 }) {
        0..=2 => format!("{{{{ {} }}}}", pipe(random)),
        3 => format!(
            "{{{{ if {} }}}}{}{{{{ else }}}}{}{{{{ end }}}}",
            pipe(random),
            node(random, depth - 1),
            node(random, depth - 1)
        ),
        4 => format!(
            "{{{{- with {} -}}}} {} {{{{- . }}}}{{{{ end }}}}",
            expression(random, 1),
            node(random, depth - 1)
        ),
        5 => format!(
            "{{{{ range $i, $e := {} }}}}{{{{ $i }}}}:{{{{ $e }}}}{}{{{{ else }}}}none{{{{ end }}}}",
            expression(random, 1),
            node(random, depth - 1)
        ),
        6 => format!("{{{{ range {} }}}}{{{{ . }}}},{{{{ end }}}}", expression(random, 2)),
        7 => format!("{{{{ $v = {} }}}}{{{{ $v }}}}", expression(random, 2)),
        8 => format!("{{{{ template \"x\" {} }}}}", expression(random, 1)),
        _ => format!("text {{{{ {}.name }}}}\n", expression(random, 1)),
    }
}

/// The template of a seed.
pub(crate) fn template(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        random.below(2);
    }
    let declarations = "{{ $v := .n }}{{ $w := \"w\" }}{{ define \"x\" }}<{{ . }}>{{ end }}";
    let nodes: String = (0..=random.below(3)).map(|_| node(&mut random, 2)).collect();
    format!("{declarations}{nodes}")
}
