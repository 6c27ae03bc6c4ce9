package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidemark-cdc/tidemark/internal/config"
)

// stopMargin is by how much longer a supervisor waits than a process may take
// to stop: docs/operations.md, Running.
const stopMargin = 15 * time.Second

// needs is what the verbs that the examples start cannot do without.
var needs = map[string]config.Need{
	"setup":    config.NeedPipeline | config.NeedPostgres | config.NeedLake,
	"streamer": config.NeedPipeline | config.NeedPostgres | config.NeedLake | config.NeedData | config.NeedPage,
	"worker":   config.NeedPipeline | config.NeedLake | config.NeedPage,
	"verify":   config.NeedLake,
	"status":   config.NeedPipeline | config.NeedPostgres | config.NeedLake,
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkSettings loads what a container is given, for the verb that it runs.
func checkSettings(t *testing.T, verb, file string, environ map[string]string) *config.Config {
	t.Helper()
	need, ok := needs[verb]
	if !ok {
		t.Fatalf("what the verb %q needs is not known here", verb)
	}
	var pairs []string
	for name, value := range environ {
		pairs = append(pairs, name+"="+value)
	}
	c, err := config.Load(config.Sources{File: file, Environ: pairs}, need)
	if err != nil {
		t.Errorf("%s: %v", verb, err)
	}
	return c
}

// timeToStop is how long a process of a verb may take to stop.
func timeToStop(c *config.Config, verb string) time.Duration {
	switch verb {
	case "streamer":
		return c.Streamer.ShutdownTimeout
	case "worker":
		return c.Worker.DrainTimeout
	}
	return 0
}

// composed is a service of docker-compose.yml.
type composed struct {
	Build         string
	Image         string
	Command       []string
	User          string
	ReadOnly      bool     `yaml:"read_only"`
	CapDrop       []string `yaml:"cap_drop"`
	SecurityOpt   []string `yaml:"security_opt"`
	Environment   map[string]string
	Ports         []string
	ContainerName string        `yaml:"container_name"`
	StopGrace     time.Duration `yaml:"stop_grace_period"`
	Restart       string
	Deploy        struct{ Replicas int }
	DependsOn     map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck   struct{ Test []string }
}

func readCompose(t *testing.T) map[string]composed {
	t.Helper()
	var file struct{ Services map[string]composed }
	if err := yaml.Unmarshal([]byte(readText(t, "../../docker-compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "temporal", "s3", "shop", "setup", "streamer", "worker", "tidemark"} {
		if _, ok := file.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	return file.Services
}

func TestComposeStartsVerbsWithSettingsThatExist(t *testing.T) {
	for name, s := range readCompose(t) {
		t.Run(name, func(t *testing.T) {
			if s.Build == "" {
				if tag := s.Image[strings.LastIndex(s.Image, ":")+1:]; !regexp.MustCompile(`^v?\d`).MatchString(tag) {
					t.Errorf("the image %s has no version", s.Image)
				}
				return
			}
			if err := understood(s.Command); err != nil {
				t.Error(err)
			}
			c := checkSettings(t, s.Command[0], "", s.Environment)
			if s.User != "65532:65532" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("it may more than it has to: %+v", s)
			}
			if stop := timeToStop(c, s.Command[0]); stop > 0 && s.StopGrace != stop+stopMargin {
				t.Errorf("it is killed after %s, and may take %s and %s", s.StopGrace, stop, stopMargin)
			}
			if test := s.Healthcheck.Test; len(test) > 0 {
				if test[0] != "CMD" || test[1] != "/tidemark" {
					t.Errorf("the container has /tidemark and no shell, and its health check is %q", test)
				}
				if err := understood(test[2:]); err != nil {
					t.Error(err)
				}
			} else if timeToStop(c, s.Command[0]) > 0 {
				t.Error("it has no health check")
			}
		})
	}
}

func TestComposeWaitsForWhatSaysThatItIsThere(t *testing.T) {
	services := readCompose(t)
	for name, s := range services {
		for other, on := range s.DependsOn {
			o, ok := services[other]
			switch {
			case !ok:
				t.Errorf("%s depends on %s, which is not there", name, other)
			case on.Condition == "service_healthy" && len(o.Healthcheck.Test) == 0:
				t.Errorf("%s waits for %s to be healthy, which has no health check", name, other)
			case on.Condition == "service_completed_successfully" && o.Restart != "no":
				t.Errorf("%s waits for the end of %s, which is started again", name, other)
			case on.Condition != "service_healthy" && on.Condition != "service_completed_successfully":
				t.Errorf("%s does not wait for %s: its condition is %q", name, other, on.Condition)
			}
		}
	}
	// Whoever refuses to start without a part waits for it; and who waits for
	// another one is stopped before it, as a streamer has to be before its workers.
	for name, parts := range map[string][]string{
		"setup": {"postgres", "temporal", "s3"}, "streamer": {"postgres", "temporal", "s3", "setup", "worker"},
		"worker": {"temporal", "s3", "setup"}, "shop": {"postgres", "setup"},
	} {
		for _, part := range parts {
			if _, ok := services[name].DependsOn[part]; !ok {
				t.Errorf("%s does not wait for %s", name, part)
			}
		}
	}
}

func TestComposeScalesWorkers(t *testing.T) {
	services := readCompose(t)
	w := services["worker"]
	if w.Deploy.Replicas != 2 || w.ContainerName != "" || len(w.Ports) > 0 {
		t.Errorf("a second worker has no place: %d replicas, name %q, ports %q", w.Deploy.Replicas, w.ContainerName, w.Ports)
	}
	// Each of them finds the streamer by what it advertises.
	c := checkSettings(t, "streamer", "", services["streamer"].Environment)
	if _, port, _ := strings.Cut(c.Data.Listen, ":"); c.Data.Advertise != "streamer:"+port {
		t.Errorf("workers are told %s, and the service streamer listens on %s", c.Data.Advertise, c.Data.Listen)
	}
}

func TestTheImageHasTheBinaryAndAuthoritiesAndNoRoot(t *testing.T) {
	file := readText(t, "../../Dockerfile")
	build, final, found := strings.Cut(file, "\nFROM scratch\n")
	if !found || strings.Contains(final, "\nFROM ") {
		t.Fatalf("the last stage is not an empty one:\n%s", file)
	}
	has(t, "the build stage", build, "CGO_ENABLED=0 go build", "-trimpath", "-X main.version=", "./cmd/tidemark")
	has(t, "the image", final, "/etc/ssl/certs/ca-certificates.crt", "/tidemark\n", "USER 65532:65532\n", `ENTRYPOINT ["/tidemark"]`)
	if strings.Contains(final, "RUN ") {
		t.Error("an empty image has nothing to run")
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readText(t, "../../go.mod"))
	if !strings.Contains(build, "FROM golang:"+wanted[1]+" ") {
		t.Errorf("go.mod wants Go %s, which the build stage does not have", wanted[1])
	}
}
