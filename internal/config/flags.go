package config

import "github.com/spf13/pflag"

// RegisterFlags adds a flag for every setting, in the order of the reference.
// The flags keep their text; Load reads it as it does that of other sources.
func RegisterFlags(flags *pflag.FlagSet) {
	var c Config
	for _, s := range settingsOf(&c) {
		v := &flagText{text: s.def, kind: "text"}
		flag := flags.VarPF(v, s.flagName(), "", s.usage)
		switch s.value.(type) {
		case boolValue, optBoolValue:
			v.kind = "bool"
			flag.NoOptDefVal = "true"
		}
	}
}

// flagText is a flag's text, and the kind that help shows.
type flagText struct{ text, kind string }

func (v *flagText) Set(s string) error { v.text = s; return nil }
func (v *flagText) String() string     { return v.text }
func (v *flagText) Type() string       { return v.kind }

// Choices are the flags that take one of a few texts, and these.
func Choices() map[string][]string {
	all := map[string][]string{}
	for _, s := range settingsOf(&Config{}) {
		if len(s.choices) > 0 {
			all[s.flagName()] = s.choices
		}
	}
	return all
}
