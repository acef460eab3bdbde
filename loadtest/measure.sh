# Functions of the load tests in shell: to fail, to measure, to compute medians. Sourced, not run.

die() {
    echo "loadtest: $*" >&2
    exit 1
}

# cpu_ticks PID: user and system time so far.
cpu_ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# median COLUMN FILE FORMAT
median() {
    awk -v column="$1" '{ print $column }' "$2" | sort -n | awk -v format="$3\n" '
        { line[NR] = $1 }
        END { printf format, (line[int((NR + 1) / 2)] + line[int(NR / 2) + 1]) / 2 }'
}
