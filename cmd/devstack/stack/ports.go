package stack

import "github.com/tidemark-cdc/tidemark/internal/pgtest"

// FreePorts returns n different ports on 127.0.0.1 that nobody listens on; see
// pgtest.FreePorts.
func FreePorts(n int) ([]int, error) { return pgtest.FreePorts(n) }

// fill replaces each zero among ports by a free port.
func fill(ports ...*int) error {
	free, err := FreePorts(len(ports))
	if err != nil {
		return err
	}
	for i, p := range ports {
		if *p == 0 {
			*p = free[i]
		}
	}
	return nil
}
