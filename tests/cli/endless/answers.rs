//! Answers without end: of the server of a URL, and of another injector.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::Arc,
    thread,
};

use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::aws_lc_rs};

use super::{super::REVIEW, ended, has_refused, run};

/// What a server writes at once.
static PART: [u8; 64 << 10] = [b'x'; 64 << 10];

/// A server that gives each connection an answer without end; its address.
fn endless(open: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut stream = open(connection.expect("a connection"));
            drop(stream.read(&mut [0; 16 << 10]));
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"));
            while stream.write_all(&PART).is_ok() {}
        }
    });
    address.to_string()
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_url_without_end_is_refused() {
    let address = endless(|connection| Box::new(connection));
    let args = words(&["inject", &format!("http://{address}/")]);
    let output = ended(run(&args, Stdio::null()), &args);
    has_refused(&output, &args, &["larger than 256 MiB"]);
}

#[test]
fn an_answer_of_an_injector_without_end_is_refused() {
    let key = rcgen::KeyPair::generate().expect("the system must provide randomness");
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate").der().clone();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider must support TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("the certificate must be usable");
    let config = Arc::new(config);
    let address = endless(move |connection| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        Box::new(StreamOwned::new(session, connection))
    });
    let args = words(&["compare", "--url", &format!("https://{address}/"), "/dev/stdin"]);
    let mut child = run(&args, Stdio::piped());
    let mut pipe = child.stdin.take().expect("stdin must be piped");
    pipe.write_all(REVIEW.as_bytes()).expect("must be read");
    drop(pipe);
    // On a slow machine, the time for an answer is over before.
    has_refused(&ended(child, &args), &args, &["larger than 256 MiB", "no answer within"]);
}
