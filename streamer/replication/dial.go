package replication

import (
	"net"
	"time"
)

// peerBound is how long a server may be unreachable before its connection
// counts as dead. The kernel finds out, by keepalive probes while nothing is
// under way and by unacknowledged data otherwise: a walsender may rightly be
// silent for very long, so no silence is held against it.
const peerBound = time.Minute

func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerBound / 4, Interval: peerBound / 6, Count: 4},
		Control:         limitUnacknowledged,
	}
}
