//! Invalid flags and files: the process ends, and the error names the flag or file.

use std::os::unix::fs::symlink;

use super::{
    client::Connection,
    files::{Folder, Pair, values_with_log_level},
    process::{Ended, Process, injectd, run},
};

const EXIT_FAILED: i32 = 1;
const EXIT_USAGE: i32 = 64;

/// `serve` on free ports, unless `args` set addresses.
async fn serve(args: &[&str]) -> Ended {
    let mut all = vec!["serve", "--standalone"];
    for flag in ["--addr", "--metrics-addr"] {
        if !args.contains(&flag) {
            all.extend([flag, "127.0.0.1:0"]);
        }
    }
    if !args.contains(&"--grpc-addr") {
        all.extend(["--grpc-addr", ""]);
    }
    run(injectd(&[&all, args].concat())).await
}

async fn must_fail(args: &[&str], code: i32, named: &[&str]) {
    let Ended { code: found, stdout, stderr } = serve(args).await;
    assert_eq!(found, Some(code), "{args:?}: {stderr}");
    assert_eq!(stdout, "", "{args:?}");
    for name in named {
        assert!(stderr.contains(name), "{args:?} must name {name}: {stderr}");
    }
}

#[tokio::test]
async fn an_error_names_the_invalid_flag() {
    for (args, named) in [
        (&["--addr", "nonsense"][..], "--addr nonsense"),
        (&["--addr", "127.0.0.1:99999"], "--addr 127.0.0.1:99999"),
        (&["--addr", ":nonsense"], "--addr :nonsense"),
        (&["--metrics-addr", "localhost"], "--metrics-addr localhost"),
        (&["--header-timeout", "5"], "--header-timeout"),
        (&["--header-timeout=-5s"], "--header-timeout"),
        (&["--drain-delay", "soon"], "--drain-delay"),
        (&["--max-connections", "many"], "--max-connections"),
        (&["--tls-cert", "some.crt"], "--tls-key"),
        (&["--tls-key", "some.key"], "--tls-cert"),
        (&["--log-format", "xml"], "--log-format"),
        (&["--log-level", "loud"], "--log-level loud: loud is no level"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        must_fail(args, EXIT_USAGE, &[named]).await;
    }
}

#[tokio::test]
async fn an_error_says_how_the_names_of_leases_may_begin() {
    let long = "a".repeat(254);
    for prefix in ["Injectd", "my_release", &long, &long[..64], "", "injectd-", "1a", "a.b"] {
        let flag = format!("--lease-prefix={prefix}");
        let named = ["--lease-prefix", "lower-case letters", "the last no hyphen"];
        must_fail(&[&flag], EXIT_USAGE, &named).await;
    }
    // The flag is in order: the next one is not.
    let flags = [&format!("--lease-prefix={}", &long[..63]), "--addr", "nonsense"];
    must_fail(&flags, EXIT_USAGE, &["--addr nonsense"]).await;
}

#[tokio::test]
async fn an_error_names_the_unreadable_file() {
    for flag in ["--values", "--trust-roots", "--objects", "--client-ca"] {
        must_fail(&[flag, "/no/such/file"], EXIT_FAILED, &["/no/such/file"]).await;
    }
    let pair = ["--tls-cert", "/no/such/crt", "--tls-key", "/no/such/key"];
    must_fail(&pair, EXIT_FAILED, &["/no/such/crt"]).await;
}

#[tokio::test]
async fn a_file_that_is_not_regular_is_rejected_at_start_with_its_flag() {
    let folder = Folder::new();
    let (pipe, link) = (folder.pipe("pipe"), folder.path("link"));
    let text = &*folder.write("text", "just: text\n");
    symlink("/dev/zero", &link).expect("the link must be created");
    for file in ["/dev/zero", "/", &pipe, &link] {
        for flag in ["--values", "--trust-roots", "--objects", "--client-ca"] {
            let named = [flag, file, "not a regular file"];
            must_fail(&[flag, file], EXIT_FAILED, &named).await;
        }
        for pair in
            [["--tls-cert", file, "--tls-key", text], ["--tls-key", file, "--tls-cert", text]]
        {
            must_fail(&pair, EXIT_FAILED, &[pair[0], file, "not a regular file"]).await;
        }
        let allowed = ["--grpc-allow-file", file, "--grpc-client-ca", text];
        let named = [allowed[0], file, "not a regular file"];
        let grpc = ["--grpc-addr", "127.0.0.1:0"];
        must_fail(&[&allowed, &grpc[..]].concat(), EXIT_FAILED, &named).await;
        let cluster = ["serve", "--kubeconfig", file, "--values", file, "--trust-roots", file];
        let Ended { code, stderr, .. } = run(injectd(&cluster)).await;
        assert_eq!(code, Some(EXIT_FAILED), "{stderr}");
        assert!(stderr.contains(&format!("--kubeconfig {file}")), "{stderr}");
    }
}

#[tokio::test]
async fn a_list_of_allowed_callers_without_a_name_is_rejected() {
    let folder = Folder::new();
    let (ca, empty) = (folder.write("ca", "just: text\n"), folder.write("allow", "# none yet\n"));
    let grpc = ["--grpc-addr", "127.0.0.1:0", "--grpc-client-ca", &ca];
    for list in ["--grpc-allow=", "--grpc-allow=,", "--grpc-allow= , "] {
        must_fail(&[&grpc[..], &[list]].concat(), EXIT_USAGE, &["--grpc-allow", "no name"]).await;
    }
    let file = ["--grpc-allow-file", &empty, "--grpc-allow", ""];
    must_fail(&[&grpc[..], &file].concat(), EXIT_USAGE, &[file[0], &empty, "no name"]).await;
}

#[tokio::test]
async fn an_error_names_the_flag_and_the_file_with_wrong_content() {
    let folder = Folder::new();
    let pairs = [Pair::self_signed(), Pair::self_signed()];
    let certificate = folder.write("tls.crt", &pairs[0].certificate);
    let other_key = folder.write("tls.key", &pairs[1].key);
    let text = folder.write("text", "just: text\n");
    let torn = ["--tls-cert", &certificate, "--tls-key", &other_key];
    must_fail(&torn, EXIT_FAILED, &["--tls-cert", &certificate, "private key"]).await;
    let no_pem = ["--tls-cert", &text, "--tls-key", &other_key];
    must_fail(&no_pem, EXIT_FAILED, &["--tls-cert", &text, "PEM"]).await;
    must_fail(&["--client-ca", &text], EXIT_FAILED, &["--client-ca", &text]).await;
    must_fail(&["--values", &text], EXIT_FAILED, &["--values", &text, "missing"]).await;
    let broken = folder.write("broken", &values_with_log_level("[unclosed"));
    must_fail(&["--values", &broken], EXIT_FAILED, &["--values", &broken, "YAML"]).await;
}

#[tokio::test]
async fn review_rejects_a_large_review_with_the_webhooks_message() {
    let folder = Folder::new();
    let large = format!("{{\"request\":\"{}\"}}", "x".repeat(10 << 20));
    let process = Process::serve(&[]).await;
    let answer = Connection::open(process.webhook).await.review(&large).await;
    assert_eq!(answer.status, 413);
    let Ended { stdout, .. } = run(injectd(&["review", &folder.write("large", &large)])).await;
    let words = format!(r#""error":"{}""#, answer.body.trim());
    assert!(stdout.contains(&words), "{stdout} must contain {words}");
}

#[tokio::test]
async fn an_error_names_the_address_in_use() {
    let process = Process::serve(&[]).await;
    let (webhook, admin) = (process.webhook.to_string(), process.admin.to_string());
    let why = "another process uses this address";
    must_fail(&["--addr", &webhook], EXIT_FAILED, &["--addr", &webhook, why]).await;
    must_fail(&["--metrics-addr", &admin], EXIT_FAILED, &["--metrics-addr", &admin, why]).await;
    process.must_still_serve().await;
}
