//! Injects a pod with the gRPC API. Start a server, then run the example:
//!
//! ```sh
//! cargo run -- serve --standalone --grpc-addr unix:/tmp/injectd.sock
//! cargo run --example inject -- unix:/tmp/injectd.sock default examples/pod.json
//! ```

use std::{env, error::Error, fs, io::Write as _};

use injectd_api::{client::Connect, v1::InjectRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let [addr, namespace, file] = args.as_slice() else {
        return Err("usage: inject ADDR NAMESPACE FILE, with an object as JSON in the file".into());
    };
    let mut client = Connect::default().to(addr).await?;
    let request = InjectRequest {
        namespace: namespace.clone(),
        kind: "Pod".to_owned(),
        object: fs::read(file)?.into(),
        ..InjectRequest::default()
    };
    let response = client.inject(request).await?.into_inner();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", response.verdict().as_str_name())?;
    for skip in &response.skips {
        writeln!(out, "skipped: {}", skip.message)?;
    }
    for warning in &response.warnings {
        writeln!(out, "ignored: {}: {}", warning.annotation, warning.problem)?;
    }
    out.write_all(&response.patch)?;
    writeln!(out)?;
    Ok(())
}
