// Package ahead says how far the versions of the inputs that this build hands to
// workflows and activities are ahead of what the source says: not at all, but in
// a build that the end-to-end tests run beside an ordinary one.
package ahead
