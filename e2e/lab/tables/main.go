// tables writes the tables of crates/webhooks/src/check/builtin from Kubernetes itself: which
// resources it has, and which fields the objects of its kinds always have.
//
//	tables read DISCOVERY         the tables of the release that it is built with, as JSON
//	tables write FOLDER JSON…     the tables of several releases: resources.txt and fields.txt
//
// DISCOVERY is the folder api/discovery of k8s.io/kubernetes. tables.sh does both for all releases.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Release is what one release of Kubernetes has.
type Release struct {
	Resources []Resource
	Kinds     []Kind
}

func main() {
	err := fmt.Errorf("usage: tables read DISCOVERY | tables write FOLDER JSON…")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "read":
		err = read(args[1])
	case len(args) > 2 && args[0] == "write":
		err = write(args[1], args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func read(discovery string) error {
	resources, err := resources(discovery)
	if err != nil {
		return err
	}
	kinds, err := kinds(resources)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(Release{Resources: resources, Kinds: kinds})
}
