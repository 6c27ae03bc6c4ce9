package pgtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
)

// FreePorts returns n different ports on 127.0.0.1 that nobody listens on.
//
// They lie below the range from which the kernel takes the ports of outgoing
// connections: while a server is stopped, no other connection can
// take its port, and no client that keeps trying to reach it can be connected
// to itself.
func FreePorts(n int) ([]int, error) {
	const lowest = 10000
	highest := 32767
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var from, to int
		if _, err := fmt.Sscan(strings.TrimSpace(string(b)), &from, &to); err == nil && from > lowest+1000 {
			highest = from - 1
		}
	}
	ports := make([]int, 0, n)
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := lowest + rand.IntN(highest-lowest+1)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held = append(held, l)
		ports = append(ports, port)
	}
	return nil, errors.New("find free ports on 127.0.0.1: none were free in 1000 tries")
}
