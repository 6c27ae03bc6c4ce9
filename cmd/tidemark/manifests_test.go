package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

const kubernetes = "../../deploy/kubernetes/"

// manifest is one object of deploy/kubernetes, with what is looked at here; make
// check-kubernetes looks at the rest.
type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Replicas                 *int
		ServiceName              string
		Template                 template
		JobTemplate              struct{ Spec struct{ Template template } }
		ClusterIP                string
		PublishNotReadyAddresses bool
		// Selector has labels as they are in a Service, else below matchLabels.
		Selector        json.RawMessage
		PodSelector     selector
		Ingress, Egress []rule
		DNSNames        []string
		SecretName      string
		ScaleTargetRef  struct{ Kind, Name string }
		MaxReplicaCount int
		Triggers        []struct{ Metadata map[string]string }
	}
}

type selector struct {
	MatchLabels      map[string]string
	MatchExpressions []struct {
		Key    string
		Values []string
	}
}

// selects says whether a pod with these labels is meant.
func (s selector) selects(labels map[string]string) bool {
	for name, value := range s.MatchLabels {
		if labels[name] != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		if !slices.Contains(e.Values, labels[e.Key]) {
			return false
		}
	}
	return true
}

// rule is one of a network policy.
type rule struct {
	From, To []struct{ PodSelector *selector }
	Ports    []struct{ Port int }
}

type template struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		AutomountServiceAccountToken, EnableServiceLinks *bool
		TerminationGracePeriodSeconds                    int
		SecurityContext                                  struct {
			RunAsNonRoot   bool
			RunAsUser      int64
			SeccompProfile struct{ Type string }
		}
		TopologySpreadConstraints []struct{ LabelSelector selector }
		Containers                []container
		Volumes                   []struct {
			Name      string
			Secret    *struct{ SecretName string }
			ConfigMap *struct{ Name string }
		}
	}
}

type container struct {
	Image string
	Args  []string
	Env   []struct {
		Name, Value string
		ValueFrom   json.RawMessage
	}
	Ports []struct {
		Name          string
		ContainerPort int
	}
	StartupProbe, LivenessProbe, ReadinessProbe *struct{ HTTPGet struct{ Path, Port string } }
	Resources                                   struct{ Limits struct{ Memory string } }
	SecurityContext                             struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	VolumeMounts []struct{ Name, MountPath string }
}

// environ gives what the container sees in its environment, with a text that
// names it in the place of what only the cluster knows.
func (c container) environ() map[string]string {
	all := map[string]string{}
	for _, e := range c.Env {
		value := e.Value
		if len(e.ValueFrom) > 0 {
			value = "the-" + strings.ToLower(strings.ReplaceAll(e.Name, "_", "-"))
		}
		for name, known := range all {
			value = strings.ReplaceAll(value, "$("+name+")", known)
		}
		all[e.Name] = value
	}
	return all
}

// readManifests reads every object of a file, or of all that the kustomization
// lists.
func readManifests(t *testing.T, files ...string) []manifest {
	t.Helper()
	var list []manifest
	for _, file := range files {
		decoder := yaml.NewDecoder(strings.NewReader(readText(t, kubernetes+file)))
		for {
			var object any
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			// JSON knows the names of fields in any case.
			text, jsonErr := json.Marshal(object)
			var m manifest
			if err = errors.Join(err, jsonErr, json.Unmarshal(text, &m)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			list = append(list, m)
		}
	}
	return list
}

// kustomization is what kustomization.yaml says.
type kustomization struct {
	Namespace          string
	Resources          []string
	ConfigMapGenerator []struct {
		Name  string
		Files []string
	} `yaml:"configMapGenerator"`
	Images []struct{ Name string }
}

func readKustomization(t *testing.T) (k kustomization) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readText(t, kubernetes+"kustomization.yaml")), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// pods gives what makes pods, by the component that it is, and the settings that
// each gets.
func pods(t *testing.T) (map[string]manifest, map[string]*config.Config) {
	t.Helper()
	all, settings := map[string]manifest{}, map[string]*config.Config{}
	for _, m := range readManifests(t, readKustomization(t).Resources...) {
		if m.Kind == "CronJob" {
			m.Spec.Template = m.Spec.JobTemplate.Spec.Template
		}
		if !slices.Contains([]string{"Job", "CronJob", "StatefulSet", "Deployment"}, m.Kind) {
			continue
		}
		c := m.Spec.Template.Spec.Containers[0]
		component := m.Spec.Template.Metadata.Labels["app.kubernetes.io/component"]
		if err := understood(c.Args); err != nil {
			t.Errorf("%s: %v", m.Metadata.Name, err)
		}
		if component != c.Args[0] {
			t.Errorf("%s runs %q and calls itself %s", m.Metadata.Name, c.Args, component)
		}
		environ := c.environ()
		if environ["TIDEMARK_CONFIG"] != "/etc/tidemark/tidemark.yaml" {
			t.Errorf("%s reads its settings from %q", component, environ["TIDEMARK_CONFIG"])
		}
		all[component] = m
		settings[component] = checkSettings(t, component, kubernetes+"tidemark.yaml", environ)
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"setup", "streamer", "verify", "worker"}) {
		t.Fatalf("there are pods of %q", got)
	}
	return all, settings
}
