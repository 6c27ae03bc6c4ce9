// Package trackertest holds the contract of package tracker as a suite of tests,
// Run, and Frontend, a small stand-in for Temporal's frontend that the suite
// passes on and whose answers a test can spoil. The suite runs over Frontend
// beside the tracker, and over a real Temporal server among the end-to-end
// tests, so that what the stand-in says is known to be what Temporal says.
package trackertest
