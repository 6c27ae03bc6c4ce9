package config

import (
	"encoding/json"
	"strconv"
)

// Origin says where a value came from.
type Origin struct {
	// Name is "default", a file's path, an environment variable's name, a flag
	// with its dashes, or another source in words.
	Name string
	// Line is the line in the file, from 1; zero for everything else.
	Line int
}

// String gives Name, or file:line.
func (o Origin) String() string {
	if o.Line > 0 {
		return o.Name + ":" + strconv.Itoa(o.Line)
	}
	return o.Name
}

// MarshalText is String.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Default is the origin of a value that nothing has set.
var defaultOrigin = Origin{Name: "default"}

// Setting is a value in force, as it may be shown to anyone: passwords are
// masked.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
}

// Settings lists the values in force, in the order of the reference.
func (c *Config) Settings() []Setting {
	list := make([]Setting, 0, len(c.settings))
	for _, s := range c.settings {
		list = append(list, Setting{Key: s.key, Value: s.shown(), Origin: c.Origin(s.key)})
	}
	return list
}

// Origin says where the value of a key came from.
func (c *Config) Origin(key string) Origin {
	if o, ok := c.origins[key]; ok {
		return o
	}
	return defaultOrigin
}

// IsSet says whether a file, the environment or a flag gave the key a value.
func (c *Config) IsSet(key string) bool { _, ok := c.origins[key]; return ok }

// Fill gives a setting that nothing has set a value that was found elsewhere,
// such as in Temporal's own configuration. A key that does not exist or is set
// is left alone, and so is a key for which value is not valid.
func (c *Config) Fill(key, value, origin string) {
	for _, s := range c.settings {
		if s.key == key && !c.IsSet(key) && s.value.Set(value) == nil {
			c.origins[key] = Origin{Name: origin}
		}
	}
}

// shown is the value as text, without its passwords.
func (s setting) shown() string {
	if s.url {
		return Mask(s.value.String())
	}
	return s.value.String()
}

// MarshalJSON gives an array of Settings, so that a Config that ends up in a
// log or a page shows no password.
func (c *Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.Settings()) }
