package main

import (
	"flag"
	"log"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdMain runs a single etcd member on 127.0.0.1 without fsync: the data
// survives a restart of the process, but not a crash of the machine.
func etcdMain() {
	dir := flag.String("data-dir", "", "folder of the data")
	client := flag.String("client-url", "http://127.0.0.1:2379", "URL for clients")
	peer := flag.String("peer-url", "http://127.0.0.1:2380", "URL for peers, of which there are none")
	flag.Parse()

	cfg := embed.NewConfig()
	cfg.Dir = *dir
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = true
	cfg.AutoCompactionMode = "periodic" // The API server compacts too; this limits the size for other clients.
	cfg.AutoCompactionRetention = "10m"
	cfg.ListenClientUrls = mustURLs(*client)
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	cfg.ListenPeerUrls = mustURLs(*peer)
	cfg.AdvertisePeerUrls = cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	e, err := embed.StartEtcd(cfg)
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	select {
	case <-stop:
		e.Close()
	case err := <-e.Err():
		log.Fatal(err)
	}
}

func mustURLs(s string) []url.URL {
	u, err := url.Parse(s)
	if err != nil {
		log.Fatal(err)
	}
	return []url.URL{*u}
}
