//! A Service: connections to its address go to its endpoints in turn.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};

use crate::expect::Outcome;

type Endpoints = Arc<Mutex<Vec<SocketAddr>>>;

/// Relays connections to endpoints in turn. Dropping it closes all of them.
#[derive(Debug)]
pub struct Balancer {
    /// The address of the Service.
    pub addr: SocketAddr,
    endpoints: Endpoints,
    cut: Arc<Notify>,
    _task: JoinSet<()>,
}

impl Balancer {
    /// A Service without endpoints, at a free port of an address.
    ///
    /// # Errors
    ///
    /// Fails if there is no port.
    pub async fn new(ip: IpAddr) -> Outcome<Self> {
        Self::at(SocketAddr::new(ip, 0)).await
    }

    /// A Service without endpoints, at an address.
    ///
    /// # Errors
    ///
    /// Fails if the port is not free.
    pub async fn at(addr: SocketAddr) -> Outcome<Self> {
        let listener = TcpListener::bind(addr).await?;
        let (addr, endpoints) = (listener.local_addr()?, Endpoints::default());
        let (mut task, cut) = (JoinSet::new(), Arc::new(Notify::new()));
        task.spawn(accept(listener, Arc::clone(&endpoints), Arc::clone(&cut)));
        Ok(Self { addr, endpoints, cut, _task: task })
    }

    /// Sends new connections to these endpoints; those that are there stay.
    pub fn set(&self, endpoints: Vec<SocketAddr>) {
        *self.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = endpoints;
    }

    /// Closes all connections that are there.
    pub fn cut(&self) {
        self.cut.notify_waiters();
    }
}

async fn accept(listener: TcpListener, endpoints: Endpoints, cut: Arc<Notify>) {
    let (mut connections, turn) = (JoinSet::new(), AtomicUsize::new(0));
    while let Ok((client, _)) = listener.accept().await {
        // Only the numbers must differ.
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let endpoint = {
            let endpoints = endpoints.lock().unwrap_or_else(PoisonError::into_inner);
            let index = turn.checked_rem(endpoints.len());
            index.and_then(|index| endpoints.get(index).copied())
        };
        if let Some(endpoint) = endpoint {
            let cut = Arc::clone(&cut);
            connections.spawn(async move {
                tokio::select! {
                    () = relay(client, endpoint) => {}
                    () = cut.notified() => {}
                }
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn relay(mut client: TcpStream, endpoint: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(endpoint).await {
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        // It fails when one side goes away.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
