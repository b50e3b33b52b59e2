// Command gitops prints what GitOps tools make of objects, by the tools' own packages.
//
// `gitops health FILE` reads a ConfigMap argocd-cm from the file and a JSON list of objects from standard input, and prints
// a list of verdicts. `gitops kustomization` fails if its standard input is no Kustomization of Flux.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kustomize "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

type verdict struct {
	Kstatus string `json:"kstatus"`
	Flux    string `json:"flux"`
	Argo    string `json:"argo"`
	Message string `json:"message"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "health":
		return printHealth(arguments[1])
	case len(arguments) == 1 && arguments[0] == "kustomization":
		return readKustomization()
	}
	return errors.New("usage: gitops health FILE | gitops kustomization")
}

func readKustomization() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, &kustomize.Kustomization{})
}

func printHealth(file string) error {
	overrides, err := healthChecks(file)
	if err != nil {
		return err
	}
	var objects []unstructured.Unstructured
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return err
	}
	verdicts := []verdict{}
	for _, object := range objects {
		judged, err := judge(&object, overrides)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, judged)
	}
	return json.NewEncoder(os.Stdout).Encode(verdicts)
}

// healthChecks reads the file as Argo CD's controller reads the ConfigMap from its cluster.
func healthChecks(file string) (lua.ResourceHealthOverrides, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &configMap); err != nil {
		return nil, err
	}
	manager := settings.NewSettingsManager(context.Background(), fake.NewClientset(&configMap), configMap.Namespace)
	overrides, err := manager.GetResourceOverrides()
	return lua.ResourceHealthOverrides(overrides), err
}

func judge(object *unstructured.Unstructured, overrides lua.ResourceHealthOverrides) (verdict, error) {
	computed, err := kstatus.Compute(object)
	if err != nil {
		return verdict{}, err
	}
	computedByFlux, err := flux.Compute(object)
	if err != nil {
		return verdict{}, err
	}
	judged := verdict{Kstatus: computed.Status.String(), Flux: computedByFlux.Status.String(), Argo: "none"}
	// Argo CD knows no health of a kind that has no check.
	found, err := health.GetResourceHealth(object, overrides)
	if found != nil {
		judged.Argo, judged.Message = string(found.Status), found.Message
	}
	return judged, err
}
