package pgoutput

import "github.com/tidemark-cdc/tidemark/internal/change"

// class is how the text of a value becomes JSON: json_categorize_type in
// src/backend/utils/adt/jsonfuncs.c (json.c before 16).
//
// A type with a user-defined cast to json is a string: the cast is SQL that only
// the server can run, so the value is written as the text that Postgres prints.
type class uint8

const (
	classString class = iota
	classNumber
	classBool
	classJSON
	classTimestamp
	classTimestampTZ
	classArray
	classVector // int2vector and oidvector: arrays whose text is a list with spaces
	classComposite
)

// shape is what writing the values of a type needs. Shapes refer to each other
// as types do and form no circles.
type shape struct {
	class class
	// delimiter stands between the elements of an array.
	delimiter byte
	// element is an array's or a vector's.
	element *shape
	// fields are a composite's, in order.
	fields []field
}

type field struct {
	label []byte // "name": as it stands in the object, escaped
	shape *shape
}

// shapes works out the shapes of one relation version's types.
type shapes struct {
	facts []change.Type
	// made holds a type's shape once it is complete, and nil while it is being
	// made.
	made map[uint32]*shape
}

func newShapes(facts []change.Type) *shapes {
	return &shapes{facts: facts, made: make(map[uint32]*shape)}
}

// of gives the shape of a type. One that is neither built in nor among the facts,
// since it was dropped before they were read, is a string, and so is one that is
// made of itself, which no catalog holds.
func (s *shapes) of(oid uint32) *shape {
	if sh, ok := s.made[oid]; ok {
		if sh == nil {
			return &shape{}
		}
		return sh
	}
	s.made[oid] = nil
	sh := s.make(oid)
	s.made[oid] = sh
	return sh
}

func (s *shapes) make(oid uint32) *shape {
	if t := s.fact(oid); t != nil {
		switch t.Kind {
		case change.KindDomain:
			return s.of(t.Base)
		case change.KindArray:
			delimiter := t.Delimiter
			if delimiter == 0 {
				delimiter = ','
			}
			return &shape{class: classArray, delimiter: delimiter, element: s.of(t.Base)}
		case change.KindComposite:
			sh := &shape{class: classComposite, fields: make([]field, len(t.Fields))}
			for i, f := range t.Fields {
				sh.fields[i] = field{label: label(f.Name), shape: s.of(f.Type)}
			}
			return sh
		}
		return &shape{}
	}
	sh := &shape{class: builtinClass(oid)}
	if element := builtinElement(oid); element != 0 {
		if sh.class != classVector {
			sh.class, sh.delimiter = classArray, ','
		}
		if element == oidBox {
			sh.delimiter = ';'
		}
		sh.element = s.of(element)
	}
	return sh
}

func (s *shapes) fact(oid uint32) *change.Type {
	for i := range s.facts {
		if s.facts[i].OID == oid {
			return &s.facts[i]
		}
	}
	return nil
}

// label gives "name":.
func label(name string) []byte { return append(appendString(nil, []byte(name)), ':') }
