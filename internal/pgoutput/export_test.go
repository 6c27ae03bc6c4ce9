package pgoutput

// BuiltinElement is for the test that compares it with a server's catalog.
var BuiltinElement = builtinElement
