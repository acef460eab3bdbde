//! A TCP relay: an API server that is not there yet, or whose old connections fall silent.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::expect::{Outcome, failed};

type Gates = Arc<Mutex<Vec<watch::Sender<bool>>>>;

/// Relays connections to an address, once it is open. Dropping it closes all of them.
#[derive(Debug)]
pub struct Relay {
    /// Where clients connect to.
    pub addr: SocketAddr,
    target: SocketAddr,
    /// Bound and not listening: clients are refused, and no other process gets the port.
    socket: Option<TcpSocket>,
    /// Of each connection, whether it is held.
    gates: Gates,
    tasks: JoinSet<()>,
}

impl Relay {
    /// A relay that is not open yet.
    ///
    /// # Errors
    ///
    /// Fails if there is no port.
    pub fn to(target: SocketAddr) -> Outcome<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self {
            addr: socket.local_addr()?,
            target,
            socket: Some(socket),
            gates: Gates::default(),
            tasks: JoinSet::new(),
        })
    }

    /// Accepts connections from here on.
    ///
    /// # Errors
    ///
    /// Fails if it is open already.
    pub fn open(&mut self) -> Outcome {
        let socket = self.socket.take().ok_or_else(|| failed("the relay is open already"))?;
        let listener = socket.listen(128)?;
        self.tasks.spawn(accept(listener, self.target, Arc::clone(&self.gates)));
        Ok(())
    }

    /// Holds back all data of the connections that are there; returns how many there are.
    #[must_use]
    pub fn hold(&self) -> usize {
        self.set(true)
    }

    /// Lets the data of all connections pass again.
    pub fn release(&self) {
        self.set(false);
    }

    fn set(&self, is_held: bool) -> usize {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        for gate in &*gates {
            gate.send_replace(is_held);
        }
        gates.len()
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, gates: Gates) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (gate, is_held) = watch::channel(false);
        gates.lock().unwrap_or_else(PoisonError::into_inner).push(gate);
        connections.spawn(relay(client, target, is_held));
    }
}

/// Relays both directions until one of them ends.
async fn relay(mut client: TcpStream, target: SocketAddr, is_held: watch::Receiver<bool>) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = pump(from_client, to_server, is_held.clone()) => {}
        () = pump(from_server, to_client, is_held) => {}
    }
}

async fn pump(
    mut source: impl AsyncRead + Unpin,
    mut sink: impl AsyncWrite + Unpin,
    mut is_held: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = source.read(&mut buffer).await {
        let passes = is_held.wait_for(|is_held| !is_held).await.is_ok();
        if !passes || sink.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
