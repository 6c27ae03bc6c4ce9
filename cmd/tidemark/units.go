package main

import "time"

// agoText writes how long ago a time was, in whole seconds.
func agoText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return max(time.Since(t), 0).Round(time.Second).String() + " ago"
}
