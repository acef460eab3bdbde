//! Match conditions, some of which an API server compiles.

/// Conditions by hand: what products use, and what is easily written wrong.
pub(super) const TABLE: [&str; 122] = [
    "true",
    "!true",
    "1",
    "'a'",
    "null",
    "null == null",
    "[]",
    "{}",
    "[] == []",
    "[1] == ['a']",
    "[1, 'a'].size() == 2",
    "[1, dyn('a')].size() == 2",
    "[object.a, 'b'].size() == 2",
    "['b', object.a].size() == 2",
    "[[], [1]].size() == 2",
    "[[1], ['a']].size() == 2",
    "[null, 'a'].size() == 2",
    "{'a': 1, 'b': object.a}.size() == 2",
    "{'a': [], 'b': [1]}.size() == 2",
    "'%s %d'.format(['a', 1]) == 'b'",
    "bool('a')",
    "int('a') == 1",
    "int('1') == 1 && uint('1') == 1u && double('x') == 1.0",
    "object[null] == 1",
    "[3, 1].sortBy(x, x) == [1, 3]",
    "object.spec.containers.sortBy(c, c.name)[0].name == 'a'",
    "object[[1]] == 1",
    "object[2.5] == 1",
    "object[b'a'] == 1",
    "object[{'a': 1}] == 1",
    "object[request.name] == 1",
    "timestamp('2020-13-01T00:00:00Z') == timestamp(object.a)",
    "duration('1h30m') == duration('-1.5s') || duration('1d') == duration('1h')",
    "duration(object.a) > duration('1ms')",
    "request.name.matches('[[:alpha:]]+') && request.name.matches('(?i)a')",
    "object.a.matches(object.b) && 'a'.matches('a{2,1}')",
    "{'a': 1}.a == 1",
    "{'a': 1, 'b': 'c'}.size() == 2",
    "object",
    "object.metadata.name",
    "object.metadata.name == 'a'",
    "object.metadata.name == 1",
    "has(object.metadata.labels)",
    "has(object.metadata)",
    "has(object)",
    "objekt.a == 1",
    "oldObject == null || object.a == oldObject.a",
    "params == null",
    "variables.a",
    "request.name == 'a'",
    "request.foo == 'a'",
    "request.name.foo == 'a'",
    "request.kind.kind == 'Pod'",
    "request.kind == 'Pod'",
    "request.kind == null",
    "request.resource.resource in ['pods', 'services']",
    "request.resource.kind == 'a'",
    "request.userInfo.groups.exists(g, g == 'a')",
    "request.userInfo.groups.all(g, g.startsWith('system:'))",
    "request.userInfo.groups.exists_one(g, g == 'a')",
    "request.userInfo.groups.map(g, g + 'a')",
    "request.userInfo.groups.filter(g, g == 'a') == []",
    "request.userInfo.extra['a'].size() == 1",
    "request.userInfo.extra.a[0] == 'b'",
    "'a' in request.userInfo.extra",
    "1 in request.userInfo.groups",
    "request.dryRun",
    "request.dryRun == 'a'",
    "request.options.a",
    "request.options.a == 1",
    "request.operation == 'CREATE' && request.namespace != 'kube-system'",
    "namespaceObject.metadata.labels.exists(k, k == 'a')",
    "namespaceObject.metadata.ownerReferences == []",
    "namespaceObject.status.phase == 'Active'",
    "authorizer",
    "authorizer.path('/healthz').check('get').allowed()",
    "authorizer.group('apps').resource('deployments').namespace('a').name('b').check('get').allowed()",
    "authorizer.resource('pods').check('get').allowed()",
    "authorizer.requestResource.check('get').reason() == ''",
    "authorizer.serviceAccount('a', 'b').group('').resource('pods').check('get').errored()",
    "request.name.lowerAscii() == 'a' && request.name.upperAscii() == 'A'",
    "request.name.reverse() == 'a'",
    "request.name.split('-')[0] == 'a'",
    "request.name.split(1) == []",
    "request.name.matches('^a.*$')",
    "request.name.matches('(')",
    "matches(request.name, 'a')",
    "request.name.substring(1, 2) == 'a'",
    "request.name.find('a+') == 'a'",
    "request.name.findAll('a+').size() == 2",
    "request.name.contains('a')",
    "request.name.includes('a')",
    "size(request.name) == 1",
    "request.name.size() == 1u",
    "size(1) == 1",
    "1 + 1 == 2",
    "1 + 1.0 == 2.0",
    "1 < 1.5",
    "1 == 1.0",
    "1u + 1 == 2u",
    "'a' + 'b' == 'ab'",
    "'a' + 1 == 'a1'",
    "-'a' == 'b'",
    "object.spec.replicas + 1 > 2",
    "object.spec.a ? object.b : object.c",
    "true ? 1 : 'a'",
    "1 ? true : false",
    "int('1') == 1 && double(1) == 1.0 && string(1) == '1' && bool('true')",
    "duration('1h') < duration('2h')",
    "duration('x') < duration('2h')",
    "timestamp('2020-01-01T00:00:00Z') < timestamp(object.metadata.creationTimestamp)",
    "timestamp('a') == timestamp('b')",
    "timestamp(object.a).getFullYear() == 2020",
    "object.metadata.?labels['a'].orValue('') == 'b'",
    "object.?spec.?hostNetwork.orValue(false)",
    "optional.of(1).hasValue()",
    "quantity('1Gi').isGreaterThan(quantity(object.a)) && isQuantity('1')",
    "ip('1.2.3.4').isLoopback() || cidr('10.0.0.0/8').containsIP('10.1.1.1') || isIP('a')",
    "url('https://a').getHost() == 'a' && isURL('a')",
    "semver('1.2.3').isLessThan(semver('2.0.0')) || format.dns1123Label().validate('a').hasValue()",
    "sets.contains([1, 2], [1]) && [1, 2].isSorted() && [1, 2].sum() == 3 && [3, 1].sort() == [1, 3]",
    "object.spec.containers.all(i, c, c.image != 'a') && object.m.transformList(k, v, v).size() == 1",
];

/// Random conditions.
pub(super) fn random(count: usize) -> Vec<String> {
    let mut random = Random(1);
    (0..count).map(|_| random.expression(3)).collect()
}

/// A linear congruential generator: the conditions are the same in each run.
struct Random(u64);

const ATOMS: [&str; 22] = [
    "object",
    "oldObject.spec",
    "request",
    "request.name",
    "request.kind",
    "request.kind.group",
    "request.userInfo.groups",
    "request.userInfo.extra",
    "request.dryRun",
    "request.options",
    "namespaceObject.metadata.labels",
    "1",
    "2.5",
    "3u",
    "'a'",
    "true",
    "false",
    "null",
    "[1, 2]",
    "['a']",
    "{'a': 1}",
    "object.metadata.labels['a']",
];
const OPERATORS: [&str; 13] =
    ["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "&&", "||", "in", "=="];
const METHODS: [&str; 18] = [
    "size()",
    "startsWith('a')",
    "contains('a')",
    "matches('a')",
    "lowerAscii()",
    "split(',')",
    "all(x, x == 'a')",
    "exists(x, x == 1)",
    "map(x, x)",
    "filter(x, x != null)",
    "join()",
    "indexOf('a')",
    "trim()",
    "substring(1)",
    "isSorted()",
    "sum()",
    "min()",
    "getHours()",
];
const FUNCTIONS: [&str; 9] =
    ["size", "string", "int", "double", "bool", "dyn", "type", "duration", "!"];

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }

    fn of(&mut self, items: &[&'static str]) -> &'static str {
        items[self.below(items.len())]
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.of(&ATOMS).to_owned();
        }
        let part = |random: &mut Self| {
            let depth = random.below(depth);
            random.expression(depth)
        };
        match self.below(8) {
            0..=3 => {
                let (one, operator, other) = (part(self), self.of(&OPERATORS), part(self));
                format!("({one} {operator} {other})")
            }
            4 => format!("{}.{}", part(self), self.of(&METHODS)),
            5 => format!("{}({})", self.of(&FUNCTIONS), part(self)),
            6 => format!("({} ? {} : {})", part(self), part(self), part(self)),
            _ => match self.below(3) {
                0 => format!("{}[{}]", part(self), part(self)),
                1 => format!("has({}.a)", part(self)),
                _ => format!("{}.name", part(self)),
            },
        }
    }
}
