// kube-lab is a Kubernetes control plane in one binary: etcd, kube-apiserver and
// kube-controller-manager. It has no scheduler and no kubelet: pods stay Pending.
// It is for tests of programs that talk to the API server, such as admission
// webhooks, and not for running containers.
//
//	kube-lab up DIR                  start everything, write DIR/kubeconfig, run until ctrl-c
//	kube-lab up DIR -- CMD ARGS...   the same, but run CMD with $KUBECONFIG set and stop after it
//	kube-lab kube-apiserver FLAGS    one component, with its own flags; also by
//	                                 argv[0], through a symbolic link of that name
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // as upstream's main: time zones for CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// components are the programs in this binary. Each runs as a process of its
// own: flags, feature gates and metrics registries are global in all of them.
var components = map[string]func(){
	"etcd":                    etcdMain,
	"kube-apiserver":          func() { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"kube-controller-manager": func() { os.Exit(cli.Run(controllers.NewControllerManagerCommand())) },
	"up":                      upMain,
	"version":                 func() { fmt.Println(version.Get().GitVersion) },
}

func main() {
	if run, ok := components[filepath.Base(os.Args[0])]; ok {
		run()
		return
	}
	if len(os.Args) > 1 {
		if run, ok := components[os.Args[1]]; ok {
			// Each component expects its own name in argv[0].
			os.Args = os.Args[1:]
			run()
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: kube-lab up DIR [-- CMD ARGS...] | etcd | kube-apiserver | kube-controller-manager | version")
	os.Exit(2)
}
