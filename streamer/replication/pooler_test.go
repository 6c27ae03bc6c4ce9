package replication

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestAPoolersRefusalIsKnown(t *testing.T) {
	// As PgBouncer 1.18 says it.
	refusal := &pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: default_transaction_read_only"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"PgBouncer":       {fmt.Errorf("inspect the server: %w", refusal), true},
		"another refusal": {&pgconn.PgError{Code: "08P01", Message: "invalid frontend message type 1"}, false},
		"the server's":    {&pgconn.PgError{Code: "57P03"}, false},
		"none":            {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsPooler(test.err); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
