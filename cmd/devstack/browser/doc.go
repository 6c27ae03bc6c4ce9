// Package browser drives a headless Chromium over the DevTools protocol, for
// tests of the status page: what a person sees, reads out and reaches with the
// keyboard. The browser has a profile of its own that nothing is left of, and is
// sent nowhere but where a test sends it.
package browser
