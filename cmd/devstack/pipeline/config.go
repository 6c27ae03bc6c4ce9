package pipeline

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Settings are configuration keys, such as segment.max_rows, and their values.
type Settings map[string]any

// For is the configuration of a pipeline over a stack's servers. Every pipeline
// has a prefix of its own in the bucket, its name. extra is added, and wins.
func For(s *stack.Stack, name string, extra Settings) Settings {
	cfg := Settings{
		"pipeline":           name,
		"postgres.url":       s.Postgres.URL(),
		"lake.url":           "s3://" + s.S3.Bucket() + "/" + name,
		"lake.endpoint":      s.LakeEndpoint(),
		"lake.region":        s.S3.Region(),
		"lake.path_style":    true,
		"temporal.address":   s.Temporal.Address(),
		"temporal.namespace": s.Temporal.Namespace(),
	}
	for k, v := range extra {
		cfg[k] = v
	}
	return cfg
}

// Slot is the slot's name, by the rule of the default when it is not set.
func (s Settings) Slot() string {
	if v, ok := s["postgres.slot"].(string); ok {
		return v
	}
	return "tidemark_" + strings.ReplaceAll(s["pipeline"].(string), "-", "_")
}

// Write writes the settings as a YAML file that only its owner can read, since
// a database URL can hold a password.
func (s Settings) Write(path string) error {
	tree := map[string]any{}
	for key, value := range s {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			tree[key] = value
			continue
		}
		sub, ok := tree[section].(map[string]any)
		if !ok {
			sub = map[string]any{}
			tree[section] = sub
		}
		sub[name] = value
	}
	b, err := yaml.Marshal(tree)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}
