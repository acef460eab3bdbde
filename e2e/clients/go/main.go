// Go asks injectd's gRPC server for the sidecar of one pod.
//
//	go generate && go run . -addr localhost:8444 -ca ca.crt ../pod.json
package main

//go:generate go run ./generate ../../../proto injectd/v1/injectd.proto

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	injectdv1 "injectd/e2e/clients/go/injectd/v1"
)

var (
	addr      = flag.String("addr", "localhost:8444", "address of the gRPC server")
	ca        = flag.String("ca", "", "CA of the server's certificate, PEM")
	cert      = flag.String("cert", "", "client certificate, PEM, if the server asks for one")
	key       = flag.String("key", "", "its private key, PEM")
	namespace = flag.String("namespace", "default", "namespace that the pod is going to be made in")
	out       = flag.String("patch", "", "file to write the patch to")
	timeout   = flag.Duration("timeout", 10*time.Second, "how long to wait for the answer")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: go run . [FLAGS] POD.json")
	}
	if err := inject(flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func inject(file string) error {
	pod, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(*addr, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	request := injectdv1.InjectRequest{Namespace: *namespace, Kind: "Pod", Object: pod}
	response, err := injectdv1.NewInjectorClient(connection).Inject(ctx, &request)
	if err != nil {
		return err
	}
	var operations []json.RawMessage
	if len(response.Patch) > 0 {
		if err := json.Unmarshal(response.Patch, &operations); err != nil {
			return fmt.Errorf("the patch: %w", err)
		}
	}
	fmt.Printf("%s, %d operations\n", response.Verdict, len(operations))
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, response.Patch, 0o644)
}

func tlsConfig() (*tls.Config, error) {
	config := tls.Config{MinVersion: tls.VersionTLS13}
	if *ca != "" {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate", *ca)
		}
	}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &config, nil
}
