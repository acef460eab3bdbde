package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource or subresource of one version.
type Resource struct {
	Group, Version, Name string
	// Object is the type of the objects in its requests.
	Object     schema.GroupVersionKind
	Namespaced bool
	// Operations are those for which the API server asks webhooks.
	Operations []string
	ShortNames []string
}

// connected are the subresources for which the API server asks with CONNECT, whatever their verbs
// (rest.Connecter).
var connected = []string{
	"nodes/proxy", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy",
}

// operations are those of the verbs of discovery.
var operations = []struct {
	operation string
	verbs     []string
}{
	{"CREATE", []string{"create"}},
	{"UPDATE", []string{"update", "patch"}},
	{"DELETE", []string{"delete", "deletecollection"}},
}

// resources reads the documents for each group and version, such as apis__apps__v1.json.
func resources(discovery string) ([]Resource, error) {
	files, err := filepath.Glob(filepath.Join(discovery, "api*__v*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no discovery documents in %s: %w", discovery, err)
	}
	var all []Resource
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list metav1.APIResourceList
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, found := range list.APIResources {
			all = append(all, resource(of, &found))
		}
	}
	return all, nil
}

func resource(of schema.GroupVersion, found *metav1.APIResource) Resource {
	object := of.WithKind(found.Kind)
	if found.Version != "" {
		object.Group, object.Version = found.Group, found.Version
	}
	result := Resource{
		Group: of.Group, Version: of.Version, Name: found.Name, Object: object,
		Namespaced: found.Namespaced, ShortNames: found.ShortNames,
	}
	if of.Group == "" && slices.Contains(connected, found.Name) {
		result.Operations = []string{"CONNECT"}
		return result
	}
	for _, it := range operations {
		if slices.ContainsFunc(it.verbs, func(verb string) bool { return slices.Contains(found.Verbs, verb) }) {
			result.Operations = append(result.Operations, it.operation)
		}
	}
	return result
}
