// Command kube is a control plane of Kubernetes in one binary, with kubectl: the name it is called by, or else its first argument, says which component to be.
//
// The tests need a real API server, and a kubelet that really runs pods, on machines without a container engine. Kubernetes
// publishes every component as a Go package, and one binary that holds them all is compiled and linked once.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl":                 run(kubectl.NewDefaultKubectlCommand),
}

func run(newCommand func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(newCommand())) }
}

func main() {
	if component, known := components[filepath.Base(os.Args[0])]; known {
		component()
		return
	}
	// The component sees its own name as the program's, as if it were a binary of its own.
	os.Args = os.Args[1:]
	if len(os.Args) > 0 {
		if component, known := components[os.Args[0]]; known {
			component()
			return
		}
	}
	names := []string{}
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: kube COMPONENT [ARGUMENT...], where COMPONENT is one of %s\n", strings.Join(names, ", "))
	os.Exit(2)
}
