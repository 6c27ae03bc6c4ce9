package config

import "go.yaml.in/yaml/v3"

// linesOf gives the line of every key of a YAML file, with dots between the
// levels. What cannot be parsed has no lines.
func linesOf(text []byte) map[string]int {
	lines := map[string]int{}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return lines
	}
	var walk func(prefix string, n *yaml.Node)
	walk = func(prefix string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := prefix + n.Content[i].Value
			lines[key] = n.Content[i].Line
			walk(key+".", n.Content[i+1])
		}
	}
	walk("", doc.Content[0])
	return lines
}
