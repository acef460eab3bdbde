package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // registers the types and their defaulting
)

// Kind is a type of objects and what is always there in them.
type Kind struct {
	schema.GroupVersionKind
	// Fields has the fields that are there whenever what they belong to is there, such as
	// spec.containers[].name.
	Fields map[string]State
	// PodSpecs has the fields that are specifications of pods: their fields are those of PodSpec.
	PodSpecs []string
}

// State of a field. The order is from less to more.
type State int

const (
	// absent in some objects.
	absent State = iota
	// nullable is there, but null in some objects.
	nullable
	// present with a value.
	present
)

var (
	schemes    = []*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregator.Scheme}
	marshaler  = reflect.TypeFor[json.Marshaler]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
	podSpec    = reflect.TypeFor[corev1.PodSpec]()
	// typeMeta has the kind and the version, which all objects in requests have.
	typeMeta = reflect.TypeFor[metav1.TypeMeta]()
)

// podSpecKind is that whose fields are those of all specifications of pods, at podSpecAt.
var podSpecKind = schema.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}

const podSpecAt = "template.spec"

// kinds finds the fields of all types of objects in requests for resources.
func kinds(resources []Resource) ([]Kind, error) {
	ofPods, err := fieldsOf(podSpecKind, podSpecAt)
	if err != nil {
		return nil, err
	}
	all := []Kind{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("PodSpec"), Fields: ofPods}}
	seen := map[schema.GroupVersionKind]bool{}
	for _, resource := range resources {
		if seen[resource.Object] {
			continue
		}
		seen[resource.Object] = true
		kind, err := kindOf(resource.Object, ofPods)
		if err != nil {
			return nil, err
		}
		all = append(all, kind)
	}
	return all, nil
}

func kindOf(gvk schema.GroupVersionKind, ofPods map[string]State) (Kind, error) {
	kind := Kind{GroupVersionKind: gvk}
	object, _, err := newObject(gvk)
	if err != nil {
		return kind, err
	}
	if kind.Fields, err = fieldsOf(gvk, ""); err != nil {
		return kind, err
	}
	for _, path := range paths(reflect.TypeOf(object).Elem(), false) {
		if path.ends(podSpec) {
			kind.PodSpecs = append(kind.PodSpecs, path.String())
		}
	}
	for _, at := range kind.PodSpecs {
		fields, err := fieldsOf(gvk, at)
		if err != nil {
			return kind, err
		}
		for field, state := range fields {
			// Pods have more defaults than templates of pods.
			if state > ofPods[field] {
				kind.Fields[at+"."+field] = state
			}
		}
	}
	return kind, nil
}

// fieldsOf has the fields below a place; without a place, those outside of specifications of pods.
func fieldsOf(gvk schema.GroupVersionKind, at string) (map[string]State, error) {
	object, scheme, err := newObject(gvk)
	if err != nil {
		return nil, err
	}
	found := map[string]State{}
	for _, path := range paths(reflect.TypeOf(object).Elem(), at != "") {
		name := path.String()
		if at != "" {
			var is bool
			if name, is = strings.CutPrefix(name, at+"."); !is {
				continue
			}
		}
		if state := stateOf(gvk, scheme, path); state != absent {
			found[name] = state
		}
	}
	return found, nil
}

func newObject(gvk schema.GroupVersionKind) (runtime.Object, *runtime.Scheme, error) {
	for _, scheme := range schemes {
		if scheme.Recognizes(gvk) {
			object, err := scheme.New(gvk)
			return object, scheme, err
		}
	}
	return nil, nil, fmt.Errorf("no type for %s", gvk)
}

// stateOf asks the defaulting and the conversion what becomes of a field that nobody sets, in the
// objects of all ways: it is always there if it is there in each of them.
func stateOf(gvk schema.GroupVersionKind, scheme *runtime.Scheme, path path) State {
	least := present
	for _, way := range ways {
		object, err := scheme.New(gvk)
		if err != nil {
			return absent
		}
		value := reflect.ValueOf(object).Elem()
		way.fill(value, nil)
		path.reach(value)
		if state, is := convert(scheme, object, path); is {
			least = min(least, state)
		}
	}
	return least
}

// convert sets the defaults and looks at the field. Objects at which the defaulting panics cannot be
// sent: a field that is required is not there.
func convert(scheme *runtime.Scheme, object runtime.Object, path path) (state State, is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	scheme.Default(object)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return absent, false
	}
	return path.look(fields), true
}
