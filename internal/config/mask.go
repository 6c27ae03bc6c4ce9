package config

import (
	"net/url"
	"regexp"
	"strings"
)

// masked stands where a password was. It needs no escaping in a URL.
const masked = "xxxxx"

// Where passwords stand in a connection string: between user and host of a
// URL, and as the libpq keywords password and sslpassword, which a URL has in
// its query. The patterns rather take too much than too little, since they are
// also used on text that is not well-formed: schemeless is for a URL whose
// beginning was mistyped.
var (
	userinfoPassword = regexp.MustCompile(`(?s)(://[^:/?#@]*:)(.*)(@)`)
	schemeless       = regexp.MustCompile(`(?s)^([^:=]*:/[^:=]*:|[^:=]*:)(.*)(@)`)
	queryPassword    = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)([^&#]*)`)
	keywordPassword  = regexp.MustCompile(`(?is)(\b(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|'.*|(?:\\.|\S)+)`)
)

// Mask replaces the passwords in a URL or a libpq keyword/value string by
// xxxxx and leaves all else as it is.
func Mask(s string) string {
	if !strings.Contains(s, "://") {
		s = schemeless.ReplaceAllString(s, "${1}"+masked+"${3}")
		return keywordPassword.ReplaceAllString(s, "${1}"+masked)
	}
	// A well-formed URL may have a colon and an at sign elsewhere.
	if u, err := url.Parse(s); err != nil || u.User != nil {
		s = userinfoPassword.ReplaceAllString(s, "${1}"+masked+"${3}")
	}
	return queryPassword.ReplaceAllString(s, "${1}"+masked)
}

// Exposed says whether the configuration file has a password and can be read by
// others than its owner: the keys with the password, and the file's path.
func (c *Config) Exposed() (keys []string, file string) {
	if !c.open {
		return nil, ""
	}
	for _, s := range c.settings {
		if s.url && c.Origin(s.key).Name == c.file && HasPassword(s.value.String()) {
			keys = append(keys, s.key)
		}
	}
	return keys, c.file
}

// HasPassword says whether s is a URL or a libpq keyword/value string with a
// password in it.
func HasPassword(s string) bool { return Mask(s) != s }
