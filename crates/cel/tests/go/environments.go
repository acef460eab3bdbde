package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// environments are those of match conditions, with objects of any type and with Pods.
func environments() (map[string]*cel.Env, error) {
	pod := podType(reflect.TypeFor[corev1.Pod](), map[reflect.Type]*apiservercel.DeclType{})
	found := map[string]*cel.Env{}
	for name, object := range map[string]*apiservercel.DeclType{"": apiservercel.DynType, "pod": pod} {
		env, err := environmentOf(object)
		if err != nil {
			return nil, fmt.Errorf("environment %q: %w", name, err)
		}
		found[name] = env
	}
	return found, nil
}

func environmentOf(object *apiservercel.DeclType) (*cel.Env, error) {
	request, namespace := plugin.BuildRequestType(), plugin.BuildNamespaceType()
	types := []*apiservercel.DeclType{request, namespace}
	if object != apiservercel.DynType {
		types = append(types, object)
	}
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(
		environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions: []cel.EnvOption{
				cel.Variable("object", object.CelType()),
				cel.Variable("oldObject", object.CelType()),
				cel.Variable("namespaceObject", namespace.CelType()),
				cel.Variable("request", request.CelType()),
				cel.Variable("authorizer", library.AuthorizerType),
				cel.Variable("authorizer.requestResource", library.ResourceCheckType),
			},
			DeclTypes: types,
		},
		environment.StrictCostOpt,
	)
	if err != nil {
		return nil, err
	}
	return set.Env(environment.StoredExpressions)
}

var special = map[reflect.Type]*apiservercel.DeclType{
	// Values are JSON: quantities are strings or numbers, times are strings.
	reflect.TypeFor[resource.Quantity]():  apiservercel.DynType,
	reflect.TypeFor[intstr.IntOrString](): apiservercel.DynType,
	reflect.TypeFor[metav1.Time]():        apiservercel.StringType,
	reflect.TypeFor[metav1.FieldsV1]():    apiservercel.DynType,
}

func podType(t reflect.Type, known map[reflect.Type]*apiservercel.DeclType) *apiservercel.DeclType {
	if found, ok := special[t]; ok {
		return found
	}
	switch t.Kind() {
	case reflect.Pointer:
		return podType(t.Elem(), known)
	case reflect.String:
		return apiservercel.StringType
	case reflect.Bool:
		return apiservercel.BoolType
	case reflect.Int32, reflect.Int64:
		return apiservercel.IntType
	case reflect.Slice:
		return apiservercel.NewListType(podType(t.Elem(), known), -1)
	case reflect.Map:
		return apiservercel.NewMapType(apiservercel.StringType, podType(t.Elem(), known), -1)
	case reflect.Struct:
		if found, ok := known[t]; ok {
			return found
		}
		fields := map[string]*apiservercel.DeclField{}
		addFields(t, fields, known)
		known[t] = apiservercel.NewObjectType(t.Name(), fields)
		return known[t]
	}
	panic(fmt.Sprint("no type for ", t))
}

func addFields(t reflect.Type, fields map[string]*apiservercel.DeclField, known map[reflect.Type]*apiservercel.DeclType) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			addFields(field.Type, fields, known)
			continue
		}
		if name != "" && name != "-" {
			fields[name] = apiservercel.NewDeclField(name, podType(field.Type, known), false, nil, nil)
		}
	}
}
