package replication

import (
	"strings"
	"testing"
)

func TestAConnectionStringIsNotInTheErrorAboutIt(t *testing.T) {
	for _, s := range []string{
		"host=h password = secret port=abc",
		`host=h password=s\ secret sslmode=wat`,
		"host=h password=two secret",
		"postgres://u:s@secret@host:x/db",
		"postgres://u:secret/x@host:5432/db",
		"postgresql:/u:secret@host/db",
		"u:secret@host/db",
	} {
		err := Config{ConnString: s, Slot: "s"}.Validate()
		if err == nil {
			t.Errorf("%s is taken", s)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error is %q", s, err)
		}
	}
}
