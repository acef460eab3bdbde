package main

import (
	"encoding/json"
	"io"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kinds "k8s.io/apimachinery/pkg/types"
)

type question struct {
	Pod       json.RawMessage `json:"pod"`
	Templates []string        `json:"templates"`
}

type answer struct {
	Template string `json:"template"`
	Text     string `json:"text"`
	Error    string `json:"error,omitempty"`
}

// SidecarTemplateData has the fields of the type of Istio that are of Kubernetes' types.
type SidecarTemplateData struct {
	TypeMeta       metav1.TypeMeta
	DeploymentMeta kinds.NamespacedName
	ObjectMeta     metav1.ObjectMeta
	Spec           corev1.PodSpec
}

// answers reads a pod with templates and prints what each template gives.
func answers(in io.Reader, out io.Writer) error {
	var question question
	if err := json.NewDecoder(in).Decode(&question); err != nil {
		return err
	}
	var all []answer
	for _, text := range question.Templates {
		var pod corev1.Pod
		if err := json.Unmarshal(question.Pod, &pod); err != nil {
			return err
		}
		data := &SidecarTemplateData{
			TypeMeta:       metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"},
			DeploymentMeta: kinds.NamespacedName{Namespace: "shop", Name: "web"},
			ObjectMeta:     pod.ObjectMeta,
			Spec:           pod.Spec,
		}
		var result strings.Builder
		answer := answer{Template: text}
		if err := template.Must(template.New("t").Parse(text)).Execute(&result, data); err != nil {
			answer.Error = err.Error()
		} else {
			answer.Text = result.String()
		}
		all = append(all, answer)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}
