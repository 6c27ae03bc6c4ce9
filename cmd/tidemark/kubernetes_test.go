package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

func TestKustomizationListsEveryFile(t *testing.T) {
	k := readKustomization(t)
	found, err := filepath.Glob(kubernetes + "*")
	if err != nil {
		t.Fatal(err)
	}
	listed := append([]string{"kustomization.yaml"}, k.Resources...)
	for _, g := range k.ConfigMapGenerator {
		listed = append(listed, g.Files...)
	}
	for _, path := range found {
		if !slices.Contains(listed, filepath.Base(path)) {
			t.Errorf("%s is not listed", path)
		}
	}
	all, _ := pods(t)
	for name, m := range all {
		if image := m.Spec.Template.Spec.Containers[0].Image; image != k.Images[0].Name {
			t.Errorf("the image of %s is %s, and kustomization.yaml names one for %s", name, image, k.Images[0].Name)
		}
	}
}

func TestPodsMayNothingThatTheyNeedNot(t *testing.T) {
	all, _ := pods(t)
	for name, m := range all {
		spec := m.Spec.Template.Spec
		c, s := spec.Containers[0].SecurityContext, spec.SecurityContext
		no := func(p *bool) bool { return p != nil && !*p }
		if !s.RunAsNonRoot || s.RunAsUser == 0 || s.SeccompProfile.Type != "RuntimeDefault" ||
			!no(c.AllowPrivilegeEscalation) || !c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []string{"ALL"}) ||
			!no(spec.AutomountServiceAccountToken) || !no(spec.EnableServiceLinks) || len(spec.Containers) != 1 {
			t.Errorf("%s: %+v", name, spec)
		}
	}
}

func TestSecretsAreReferredToOnly(t *testing.T) {
	for _, m := range readManifests(t, readKustomization(t).Resources...) {
		if m.Kind == "Secret" {
			t.Errorf("the Secret %s is in the files", m.Metadata.Name)
		}
	}
	all, settings := pods(t)
	for name, m := range all {
		spec := m.Spec.Template.Spec
		for _, e := range spec.Containers[0].Env {
			if (strings.Contains(e.Name, "KEY") || strings.Contains(e.Name, "PASSWORD")) && !bytes.Contains(e.ValueFrom, []byte("secretKeyRef")) {
				t.Errorf("%s has %s by value", name, e.Name)
			}
		}
		url, err := url.Parse(settings[name].Postgres.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := url.User.Password(); has || url.Query().Get("sslmode") != "verify-full" {
			t.Errorf("the database is reached by %s", url.Redacted())
		}
		// Every file that the verb reads is mounted, from a Secret.
		d, o, p := settings[name].Data, settings[name].Ops, settings[name].Postgres
		inDatabase := []string{p.PasswordFile, url.Query().Get("sslrootcert")}
		inService := []string{d.TLSCert, d.TLSKey, d.TLSCA, d.TLSClientCA, d.TokenFile, o.TokenFile}
		files := map[string][]string{"setup": inDatabase, "worker": inService, "streamer": slices.Concat(inDatabase, inService)}[name]
		mounted := map[string]bool{}
		for _, mount := range spec.Containers[0].VolumeMounts {
			for _, v := range spec.Volumes {
				if v.Name == mount.Name {
					mounted[mount.MountPath] = v.Secret != nil
				}
			}
		}
		for _, file := range files {
			if secret := mounted[filepath.Dir(file)]; file == "" || !secret {
				t.Errorf("%s reads %q, and no Secret is mounted there", name, file)
			}
		}
		if _, there := mounted["/etc/tidemark"]; !there {
			t.Errorf("the settings of %s are not mounted", name)
		}
	}
}

func TestProbesAskWhatIsAnsweredWithoutAToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	tokens, err := bearer.Follow("the token", file, quiet)
	if err != nil {
		t.Fatal(err)
	}
	page := ops.Page{Ready: func() []string { return nil }, Tokens: tokens, Logger: quiet, Level: new(slog.LevelVar), Metrics: prometheus.NewRegistry()}
	all, settings := pods(t)
	for _, name := range []string{"streamer", "worker"} {
		c := all[name].Spec.Template.Spec.Containers[0]
		for what, p := range map[string]*struct{ HTTPGet struct{ Path, Port string } }{"start": c.StartupProbe, "life": c.LivenessProbe, "readiness": c.ReadinessProbe} {
			if p == nil {
				t.Errorf("%s has no probe of its %s", name, what)
				continue
			}
			answer := httptest.NewRecorder()
			page.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, p.HTTPGet.Path, nil))
			if answer.Code != http.StatusOK || p.HTTPGet.Port != "ops" {
				t.Errorf("%s's probe of its %s asks for %s at port %s, and gets %d", name, what, p.HTTPGet.Path, p.HTTPGet.Port, answer.Code)
			}
			// A supervisor that restarts what is not ready makes outages longer.
			if (p.HTTPGet.Path == "/readyz") != (what == "readiness") {
				t.Errorf("%s's probe of its %s asks for %s", name, what, p.HTTPGet.Path)
			}
		}
		want := map[string]int{"ops": port(t, settings[name].Ops.Listen)}
		if name == "streamer" {
			want["data"] = port(t, settings[name].Data.Listen)
		}
		got := map[string]int{}
		for _, p := range c.Ports {
			got[p.Name] = p.ContainerPort
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s listens on %v, and its container has %v", name, want, got)
		}
	}
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	n, numErr := strconv.Atoi(text)
	if err = errors.Join(err, numErr); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPodsHaveTheTimeAndTheMemoryThatTheyNeed(t *testing.T) {
	all, settings := pods(t)
	for name, r := range map[string]roles{"streamer": {streamer: true}, "worker": {worker: true}} {
		spec, c := all[name].Spec.Template.Spec, settings[name]
		if grace := time.Duration(spec.TerminationGracePeriodSeconds) * time.Second; grace != timeToStop(c, name)+stopMargin {
			t.Errorf("%s is killed after %s, and may take %s and %s", name, grace, timeToStop(c, name), stopMargin)
		}
		// docs/operations.md, Memory: the limit and 64 MiB.
		text, isMebi := strings.CutSuffix(spec.Containers[0].Resources.Limits.Memory, "Mi")
		limit, err := strconv.Atoi(text)
		if want := memoryLimit(c, r)/mebibyte + 64; err != nil || !isMebi || int64(limit) < want || int64(limit) > want+64 {
			t.Errorf("%s may use %sMi, and needs %d", name, text, want)
		}
	}
}

func TestStreamersAreFoundByTheNamesOfTheirPods(t *testing.T) {
	all, settings := pods(t)
	k, set := readKustomization(t), all["streamer"]
	if set.Kind != "StatefulSet" || *set.Spec.Replicas != 2 {
		t.Errorf("one streamer and a standby are a StatefulSet of 2, not a %s of %d", set.Kind, *set.Spec.Replicas)
	}
	domain := "." + set.Spec.ServiceName + "."
	if got, want := settings["streamer"].Data.Advertise, "the-pod-name"+domain+"the-pod-namespace.svc"; got != want {
		t.Errorf("a streamer advertises %s, want %s", got, want)
	}
	if !strings.Contains(readText(t, kubernetes+"streamer.yaml"), "fieldPath: metadata.name}") {
		t.Error("the pod's name is not that of its metadata")
	}
	found := 0
	for _, m := range readManifests(t, k.Resources...) {
		switch {
		case m.Kind == "Service" && m.Metadata.Name == set.Spec.ServiceName:
			found++
			if m.Spec.ClusterIP != "None" || !m.Spec.PublishNotReadyAddresses {
				t.Error("the service does not name each pod, ready or not")
			}
		case m.Kind == "Certificate" && m.Metadata.Name == "tidemark-streamer":
			found++
			if want := "*" + domain + k.Namespace + ".svc"; !slices.Equal(m.Spec.DNSNames, []string{want}) {
				t.Errorf("the certificate is for %q, want %s", m.Spec.DNSNames, want)
			}
		}
	}
	if found != 2 {
		t.Error("the service of the streamers, or their certificate, is missing")
	}
}

// Selectors that select nothing fail silently.
func TestSelectorsFindTheirPods(t *testing.T) {
	all, _ := pods(t)
	checked := 0
	check := func(m manifest, s selector, want ...string) {
		checked++
		var got []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if s.selects(all[name].Spec.Template.Metadata.Labels) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s selects %q, want %q", m.Kind, m.Metadata.Name, got, want)
		}
	}
	for _, m := range readManifests(t, readKustomization(t).Resources...) {
		of := m.Metadata.Labels["app.kubernetes.io/component"]
		var s selector
		if m.Kind == "Service" {
			s.MatchLabels = map[string]string{}
			if err := json.Unmarshal(m.Spec.Selector, &s.MatchLabels); err != nil {
				t.Fatal(err)
			}
		} else if m.Spec.Selector != nil {
			if err := json.Unmarshal(m.Spec.Selector, &s); err != nil {
				t.Fatal(err)
			}
		}
		for _, spread := range m.Spec.Template.Spec.TopologySpreadConstraints {
			check(m, spread.LabelSelector, of)
		}
		switch m.Kind {
		case "Service", "PodDisruptionBudget", "StatefulSet", "Deployment":
			check(m, s, of)
		case "PodMonitor":
			check(m, s, "streamer", "worker")
		}
	}
	if checked != 8 {
		t.Errorf("%d selectors were checked", checked)
	}
}

func TestPoliciesLetThroughWhatTheSettingsNameAndNoMore(t *testing.T) {
	all, settings := pods(t)
	s := settings["streamer"]
	database, err := url.Parse(s.Postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	const dns, https = 53, 443
	data, page := port(t, s.Data.Listen), port(t, s.Ops.Listen)
	temporal, postgres := port(t, s.Temporal.Address), port(t, database.Host)
	want := map[string][]string{
		"setup":    {in(page, "others"), out(dns), out(https), out(postgres), out(temporal)},
		"streamer": {in(page, "others"), in(data, "worker"), out(dns), out(https), out(postgres), out(temporal)},
		"worker":   {in(page, "others"), out(dns), out(https), out(temporal), out(data)},
		"verify":   {in(page, "others"), out(dns), out(https), out(temporal)},
	}
	policies := readManifests(t, "networkpolicy.yaml")
	for name, m := range all {
		var got []string
		for _, policy := range policies {
			if !policy.Spec.PodSelector.selects(m.Spec.Template.Metadata.Labels) {
				continue
			}
			for _, r := range policy.Spec.Ingress {
				from := "others"
				for other, o := range all {
					if r.From[0].PodSelector != nil && r.From[0].PodSelector.selects(o.Spec.Template.Metadata.Labels) {
						from = other
					}
				}
				for _, p := range r.Ports {
					got = append(got, in(p.Port, from))
				}
			}
			for _, r := range policy.Spec.Egress {
				for _, p := range r.Ports {
					got = append(got, out(p.Port))
				}
			}
		}
		slices.Sort(got)
		got, wanted := slices.Compact(got), slices.Sorted(slices.Values(want[name]))
		if !slices.Equal(got, wanted) {
			t.Errorf("%s: the policies let through\n%q, want\n%q", name, got, wanted)
		}
	}
}

func in(port int, from string) string { return fmt.Sprintf("in to %d from %s", port, from) }
func out(port int) string             { return fmt.Sprintf("out to %d", port) }

func TestTheAutoscalerLooksAtTheQueueOfTheWorkers(t *testing.T) {
	all, settings := pods(t)
	c, scaled := settings["worker"], readManifests(t, "autoscaler.yaml")[0].Spec
	if scaled.ScaleTargetRef.Name != all["worker"].Metadata.Name || all["worker"].Spec.Replicas != nil {
		t.Errorf("it scales %s, and the workers' own number is %v", scaled.ScaleTargetRef.Name, all["worker"].Spec.Replicas)
	}
	queue := scaled.Triggers[0].Metadata
	if queue["endpoint"] != c.Temporal.Address || queue["namespace"] != c.Temporal.Namespace || queue["taskQueue"] != c.Temporal.TaskQueue {
		t.Errorf("it looks at %v, and the workers ask %+v", queue, c.Temporal)
	}
	target, err := strconv.ParseInt(queue["targetQueueSize"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if want := c.Streamer.MaxInFlight / (c.Worker.Concurrency + target); int64(scaled.MaxReplicaCount) != want {
		t.Errorf("at most %d workers, and work there is for %d", scaled.MaxReplicaCount, want)
	}
}
