// Package s3gateway serves a folder as an S3 store in this process, on a
// loopback address: a bucket is a folder, an object a file. It can be stopped
// and started again over the same folder. One gateway per process.
package s3gateway
