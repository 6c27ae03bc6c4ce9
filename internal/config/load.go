package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources is what Load reads, from the weakest to the strongest.
type Sources struct {
	// File is the YAML file's path; empty for none.
	File string
	// Environ holds NAME=value pairs, as os.Environ gives them.
	Environ []string
	// Flags is a set that RegisterFlags was called on, parsed; nil for none.
	Flags *pflag.FlagSet
}

// Load reads the sources and checks what they say for a process that needs
// what need lists. The Config is never nil: where the error is an *InvalidError it
// holds what could be read, so that it can be shown; there is no other error.
func Load(src Sources, need Need) (*Config, error) {
	c := &Config{origins: map[string]Origin{}}
	c.settings = settingsOf(c)
	l := loader{config: c, merged: koanf.New(".")}
	for _, s := range c.settings {
		if s.def != "" {
			l.set(s, s.def)
		}
	}
	l.file(src.File)
	l.environment(src.Environ)
	l.flags(src.Flags)
	for _, s := range c.settings {
		if l.merged.Exists(s.key) {
			l.set(s, l.merged.Get(s.key))
		}
	}
	c.derive()
	l.problems = append(l.problems, c.check(need, src.Environ)...)
	if len(l.problems) > 0 {
		return c, &InvalidError{Problems: l.problems}
	}
	return c, nil
}

// derive fills in the defaults that follow from other settings.
func (c *Config) derive() {
	if c.Pipeline != "" {
		setDefault(&c.Postgres.Slot, "tidemark_"+strings.ReplaceAll(c.Pipeline, "-", "_"))
		setDefault(&c.Temporal.TaskQueue, "tidemark-"+c.Pipeline)
	}
	setDefault(&c.Postgres.Publication, c.Postgres.Slot)
}

func setDefault(p *string, def string) {
	if *p == "" {
		*p = def
	}
}

// loader collects the values of all sources and what is wrong with them.
type loader struct {
	config   *Config
	merged   *koanf.Koanf
	problems []string
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	provider := file.Provider(path)
	text, err := provider.ReadBytes()
	if err != nil {
		// The text of a PathError names the system call; the path is enough.
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		l.problem("the configuration file %s cannot be read: %v", path, err)
		return
	}
	layer := koanf.New(".")
	if err := layer.Load(provider, yaml.Parser()); err != nil {
		l.problem("the configuration file %s is not valid YAML: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if fi, err := os.Stat(path); err == nil {
		l.config.file, l.config.open = path, fi.Mode().Perm()&0o044 != 0
	}
	lines := linesOf(text)
	l.merge(layer, func(key string) Origin { return Origin{Name: path, Line: lines[key]} })
}

func (l *loader) environment(environ []string) {
	byName := map[string]string{}
	for _, s := range l.config.settings {
		byName[s.envName()] = s.key
	}
	layer := koanf.New(".")
	l.load(layer, env.Provider(".", env.Opt{
		Prefix:      "TIDEMARK_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, text string) (string, any) {
			key, ok := byName[name]
			if ok && text != "" {
				return key, text
			}
			if !ok && !notOurs(name) {
				names := make([]string, 0, len(byName))
				for n := range byName {
					names = append(names, n)
				}
				l.problem("the environment variable %s is no setting%s", name, didYouMean(name, names))
			}
			return "", nil
		},
	}))
	l.merge(layer, func(key string) Origin { return Origin{Name: l.setting(key).envName()} })
}

// notOurs says whether a TIDEMARK_ variable is not a setting, and rightly so:
// it names the configuration file, or is the development stack's and its tests',
// or Kubernetes put it there because a service is called tidemark or
// tidemark-something (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
func notOurs(name string) bool {
	switch {
	case name == "TIDEMARK_CONFIG", name == "TIDEMARK_POSTGRES18", strings.HasPrefix(name, "TIDEMARK_DEVSTACK_"):
		return true
	case strings.HasSuffix(name, "_SERVICE_HOST"), strings.Contains(name, "_SERVICE_PORT"):
		return true
	}
	return strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_PORT_")
}

func (l *loader) flags(flags *pflag.FlagSet) {
	if flags == nil {
		return
	}
	byName := map[string]setting{}
	for _, s := range l.config.settings {
		byName[s.flagName()] = s
	}
	layer := koanf.New(".")
	l.load(layer, posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
		s, ok := byName[f.Name]
		if !ok || !f.Changed {
			return "", nil
		}
		text := f.Value.String()
		if s.url && HasPassword(text) {
			l.problem("--%s has a password in it, which everyone on this machine could read in the process list: give it as %s, in the configuration file%s",
				f.Name, s.envName(), passwordHint(s.key))
			return "", nil
		}
		return s.key, text
	}))
	l.merge(layer, func(key string) Origin { return Origin{Name: "--" + l.setting(key).flagName()} })
}

func passwordHint(key string) string {
	if key == "postgres.url" {
		return ", as PGPASSWORD, in a PGPASSFILE or by postgres.password_file"
	}
	return " or as AWS credentials"
}

// load reads from a provider that cannot fail.
func (l *loader) load(layer *koanf.Koanf, p koanf.Provider) {
	if err := layer.Load(p, nil); err != nil {
		l.problem("read settings: %v", err)
	}
}

// merge puts a layer over those before, with the origin of each of its keys.
func (l *loader) merge(layer *koanf.Koanf, origin func(key string) Origin) {
	known := make([]string, 0, len(l.config.settings))
	for _, s := range l.config.settings {
		known = append(known, s.key)
	}
	for _, key := range layer.Keys() {
		switch {
		case !slices.Contains(known, key):
			// A section that is left empty says nothing.
			if layer.Get(key) == nil && slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, key+".") }) {
				layer.Delete(key)
				continue
			}
			l.problem("%s: %s is no setting%s", origin(key), key, didYouMean(key, known))
			layer.Delete(key)
		case layer.Get(key) == nil:
			layer.Delete(key)
		default:
			l.config.origins[key] = origin(key)
		}
	}
	if err := l.merged.Merge(layer); err != nil {
		l.problem("read settings: %v", err)
	}
}

func (l *loader) setting(key string) setting {
	i := slices.IndexFunc(l.config.settings, func(s setting) bool { return s.key == key })
	return l.config.settings[i]
}

// set gives a setting a value as a source has it: text, or what YAML makes of
// it.
func (l *loader) set(s setting, v any) {
	var err error
	if elems, ok := v.([]any); ok {
		list, isList := s.value.(listValue)
		if isList {
			texts := make([]string, 0, len(elems))
			for _, e := range elems {
				texts = append(texts, scalar(e))
			}
			err = list.SetList(texts)
		} else {
			err = errors.New("want one value, not a list")
		}
	} else {
		err = s.value.Set(scalar(v))
	}
	if err != nil {
		l.problem("%s (%s): %v", s.key, l.config.Origin(s.key), err)
	}
}

// scalar gives the text of a YAML scalar.
func scalar(v any) string {
	if t, ok := v.(time.Time); ok {
		return t.Format(time.DateOnly)
	}
	return fmt.Sprint(v)
}
