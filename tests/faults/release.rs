//! The Linkerd release in use, and values of a release that this build does not know.

use super::{
    files::{Folder, values_of_version},
    process::{Ended, Process, injectd, run},
};

const UNKNOWN: &str = "injectd_release_unknown";
const OFTEN: [&str; 2] = ["--reload-interval", "20ms"];

fn info(release: &str, version: &str, source: &str) -> String {
    format!(
        "injectd_config_info{{linkerd_release=\"{release}\",linkerd_version=\"{version}\",source=\"{source}\"}}"
    )
}

/// The line of the log with this message.
fn line(process: &Process, message: &str) -> String {
    let log = process.log();
    log.lines().find(|line| line.contains(message)).unwrap_or_default().to_owned()
}

/// A process with values of this version.
async fn on_version(folder: &Folder, version: &str, flags: &[&str]) -> Process {
    let values = folder.write("values", &values_of_version(version));
    Process::serve(&[&["--values", &values], &OFTEN[..], flags].concat()).await
}

#[tokio::test]
async fn a_known_release_is_in_the_log_the_metrics_and_the_probe() {
    let process = on_version(&Folder::new(), "enterprise-2.18.4", &[]).await;
    process.logs("configuration applied").await;
    let applied = line(&process, "configuration applied");
    for field in ["level=info", "release=edge-25.4.4", "version=enterprise-2.18.4", "source=values"]
    {
        assert!(applied.contains(field), "{field} in {applied}");
    }
    assert_eq!(
        process.metric(&info("edge-25.4.4", "enterprise-2.18.4", "values")).await,
        Some(1.0)
    );
    assert_eq!(process.metric(UNKNOWN).await, Some(0.0));
    assert_eq!(process.page("/ready").await.1, "ok\nrelease edge-25.4.4\n");
    assert!(!process.log().contains("unknown Linkerd release"), "{}", process.log());
}

#[tokio::test]
async fn an_unknown_release_is_a_warning_and_a_metric_until_the_values_name_a_known_one() {
    let folder = Folder::new();
    let process = on_version(&folder, "edge-27.12.1", &[]).await;
    process.logs("unknown Linkerd release").await;
    let warning = line(&process, "unknown Linkerd release");
    for text in [
        "level=warning",
        "edge-27.12.1",
        "newer than edge-26.8.3",
        "injecting as edge-26.8.3",
        "set INJECTD_LINKERD_VERSION",
        "upgrade injectd",
        "source=newest",
    ] {
        assert!(warning.contains(text), "{text} in {warning}");
    }
    let unknown = info("edge-26.8.3", "edge-27.12.1", "newest");
    assert_eq!(process.metric(&unknown).await, Some(1.0));
    assert_eq!(process.metric(UNKNOWN).await, Some(1.0));
    let ready = process.page("/ready").await;
    assert_eq!(ready, (200, "ok\nunknown release, injecting as edge-26.8.3\n".to_owned()));

    folder.write("values", &values_of_version("edge-26.6.3"));
    process.counts(&info("edge-26.6.3", "edge-26.6.3", "values"), 1.0).await;
    assert_eq!(process.metric(&unknown).await, Some(0.0));
    assert_eq!(process.metric(UNKNOWN).await, Some(0.0));
    assert_eq!(process.page("/ready").await.1, "ok\nrelease edge-26.6.3\n");
    process.logs("version=edge-26.6.3").await;
}

#[tokio::test]
async fn values_of_an_unknown_release_are_rejected_by_flag_and_the_old_ones_stay() {
    let folder = Folder::new();
    let process = on_version(&folder, "edge-26.6.3", &["--unknown-release", "reject"]).await;
    folder.write("values", &values_of_version("stable-2.99.0"));
    process.counts(r#"injectd_reload_rejected{what="config"}"#, 1.0).await;
    process.logs("stable-2.99.0").await;
    let refused = line(&process, "stable-2.99.0");
    assert!(refused.contains("linkerdVersion") && refused.contains("--unknown-release"));
    assert_eq!(process.metric("injectd_config_generation").await, Some(1.0));
    assert_eq!(process.metric(&info("edge-26.6.3", "edge-26.6.3", "values")).await, Some(1.0));
    assert_eq!(process.metric(UNKNOWN).await, Some(0.0));
    process.must_still_serve().await;
}

#[tokio::test]
async fn a_server_that_refuses_unknown_releases_does_not_start_with_values_of_one() {
    let folder = Folder::new();
    let values = folder.write("values", &values_of_version("my-fork-1"));
    let mut command = injectd(&["serve", "--standalone", "--values", &values]);
    command.args(["--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--grpc-addr", ""]);
    command.env("INJECTD_UNKNOWN_RELEASE", "reject");
    let Ended { code, stderr, .. } = run(command).await;
    assert_eq!(code, Some(1), "{stderr}");
    for text in ["linkerdVersion", "my-fork-1", &values, "INJECTD_LINKERD_VERSION"] {
        assert!(stderr.contains(text), "{text} in {stderr}");
    }
}
