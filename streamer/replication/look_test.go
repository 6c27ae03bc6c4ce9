package replication

import (
	"testing"
	"time"
)

func TestADirectConnectionShowsNoPoolerAndTheServersClock(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		c, err := d.admin.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.Pooled() || c.Swapped() || len(c.Backends) != looks || c.Announced == 0 {
			t.Errorf("connection %+v", c)
		}
		if c.Ahead.Abs() > c.Within+time.Millisecond {
			t.Errorf("on one machine the clocks differ by %s, give or take %s", c.Ahead, c.Within)
		}
	})
}

func TestPoolersAreToldByTheirBackends(t *testing.T) {
	for name, tc := range map[string]struct {
		c               Connection
		pooled, swapped bool
	}{
		"the server":           {Connection{Announced: 7, Backends: []uint32{7, 7, 7}}, false, false},
		"a session pooler":     {Connection{Announced: 1, Backends: []uint32{7, 7, 7}}, true, false},
		"a transaction pooler": {Connection{Announced: 1, Backends: []uint32{7, 8, 7}}, true, true},
	} {
		if tc.c.Pooled() != tc.pooled || tc.c.Swapped() != tc.swapped {
			t.Errorf("%s: pooled %v, swapped %v", name, tc.c.Pooled(), tc.c.Swapped())
		}
	}
}
