// Package proc runs a child process that cannot outlive its parent and whose
// output goes to a file.
//
// Each child leads a process group of its own, so that a Ctrl-C in the terminal
// reaches the parent alone and the parent decides in which order its children
// end. Should the parent be killed, the kernel kills its children
// (PR_SET_PDEATHSIG). A child is only ever ended by its own process ID.
package proc
