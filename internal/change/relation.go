package change

// Relation is one version of a table's description, as a Relation message gave
// it, together with the facts of the types that its columns use. It is
// immutable once made.
type Relation struct {
	// OID is the table's. A table that was dropped and made again has another.
	OID uint32 `json:"oid"`
	// Hash identifies the version as far as every connection agrees on it:
	// xxhash64 over the OID and the columns' names, types and modifiers (see
	// docs/format.md). It does not cover the table's name and its replica
	// identity, of which a connection can hear late, nor the facts of types,
	// which are read from the catalog as it is now and not as it was at a WAL
	// position.
	Hash uint64 `json:"hash,string"`
	// Namespace and Name are unquoted. An empty namespace on the wire is
	// pg_catalog and is given as that.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Identity is the replica identity: 'd' default, 'n' nothing, 'f' full,
	// 'i' index.
	Identity byte     `json:"identity"`
	Columns  []Column `json:"columns"`
	// Types holds a fact for every type that Columns use, and the types these
	// are made of, except built-in ones, which a decoder knows.
	Types []Type `json:"types,omitempty"`
}

// Column is one column of a Relation, in the order of the tuples.
type Column struct {
	Name string `json:"name"`
	// Type is the type's OID and Modifier its atttypmod, -1 for none.
	Type     uint32 `json:"type"`
	Modifier int32  `json:"modifier"`
	// Key says that the column is part of the replica identity.
	Key bool `json:"key,omitempty"`
}

// KeyValue is a column of the replica identity with its value, as the text that
// the stream has.
type KeyValue struct {
	Column string
	Text   []byte
}

// Type is what a decoder has to know of a type that is not built in.
type Type struct {
	OID       uint32   `json:"oid"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Kind      TypeKind `json:"kind"`
	// Base is a domain's base type, an array's element type, a range's subtype
	// or a multirange's range. Zero for other kinds.
	Base uint32 `json:"base,omitempty"`
	// Delimiter separates the elements of an array; ',' for all types but box.
	Delimiter byte `json:"delimiter,omitempty"`
	// Fields are a composite's live attributes, in order.
	Fields []Column `json:"fields,omitempty"`
	// JSONCast says that to_json follows a user-defined cast to json for this
	// type.
	JSONCast bool `json:"json_cast,omitempty"`
}

// TypeKind is the sort of a Type.
type TypeKind string

// The kinds of types.
const (
	KindBase       TypeKind = "base"
	KindArray      TypeKind = "array"
	KindEnum       TypeKind = "enum"
	KindDomain     TypeKind = "domain"
	KindComposite  TypeKind = "composite"
	KindRange      TypeKind = "range"
	KindMultirange TypeKind = "multirange"
)
