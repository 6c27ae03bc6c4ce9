package main

import (
	"fmt"
	"time"
)

// bytesText writes a number of bytes for people.
func bytesText(n int64) string {
	const units = "KMGTP"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n)/(1<<10), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[u])
}

// agoText writes how long ago a time was, in whole seconds.
func agoText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return max(time.Since(t), 0).Round(time.Second).String() + " ago"
}
