package main

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// istioFunctions are those whose meaning the documentation of Istio's templates gives.
func istioFunctions() map[string]any {
	return map[string]any{
		"toYaml": func(value any) string {
			text, err := yaml.Marshal(value)
			if err != nil {
				return ""
			}
			return string(text)
		},
		"indent": func(spaces int, text string) string {
			lines := strings.Split(text, "\n")
			return strings.Join(lines, "\n"+strings.Repeat(" ", spaces))
		},
		"directory": func(file string) string {
			dir, _ := path.Split(file)
			return dir
		},
		"contains": func(sub, text string) bool { return strings.Contains(text, sub) },
		"toLower":  strings.ToLower,
		"isset": func(texts map[string]string, key string) bool {
			_, found := texts[key]
			return found
		},
		"valueOrDefault": func(value, other any) any {
			if value == "" || value == nil {
				return other
			}
			return value
		},
		"structToJSON": func(value any) string {
			if value == nil {
				return "{}"
			}
			text, err := json.Marshal(value)
			if err != nil {
				return "{}"
			}
			return string(text)
		},
		"toJSON": func(texts map[string]string) string {
			if texts == nil {
				return "{}"
			}
			text, err := json.Marshal(texts)
			if err != nil {
				return "{}"
			}
			return string(text)
		},
		"fromJSON": func(text string) any {
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				return "{}"
			}
			return value
		},
		"strdict": func(parts ...string) map[string]string {
			texts := map[string]string{}
			for at := 0; at < len(parts); at += 2 {
				texts[parts[at]] = ""
				if at+1 < len(parts) {
					texts[parts[at]] = parts[at+1]
				}
			}
			return texts
		},
		"omit": func(texts map[string]string, keys ...string) map[string]string {
			rest := map[string]string{}
			for key, text := range texts {
				rest[key] = text
			}
			for _, key := range keys {
				delete(rest, key)
			}
			return rest
		},
		"mergeMaps": mergeMaps,
		"toJsonMap": func(all ...map[string]string) string {
			text, err := json.Marshal(mergeMaps(all...))
			if err != nil {
				return ""
			}
			return string(text)
		},
		"excludeInboundPort": func(port any, list string) string {
			text := strings.TrimSpace(fmt.Sprint(port))
			if text == "" || text == "0" {
				return list
			}
			kept := []string{}
			for _, part := range strings.Split(list, ",") {
				if part == text {
					return list
				}
				if part = strings.TrimSpace(part); part != "" {
					kept = append(kept, part)
				}
			}
			return strings.Join(append(kept, text), ",")
		},
	}
}

func mergeMaps(all ...map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	merged := map[string]string{}
	for _, texts := range all {
		for key, text := range texts {
			merged[key] = text
		}
	}
	return merged
}
