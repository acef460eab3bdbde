package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"gopkg.in/inf.v0"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// show prints a value with its type. Maps are in the order of their entries' texts.
func show(value ref.Val) string {
	switch v := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return fmt.Sprint(bool(v))
	case types.Int:
		return fmt.Sprintf("%d", int64(v))
	case types.Uint:
		return fmt.Sprintf("%du", uint64(v))
	case types.Double:
		return "double:" + strconv.FormatUint(math.Float64bits(float64(v)), 16)
	case types.String:
		return quoted(string(v))
	case types.Bytes:
		return "bytes:" + base64.StdEncoding.EncodeToString(v)
	case types.Duration:
		return fmt.Sprintf("duration:%d", v.Duration.Nanoseconds())
	case types.Timestamp:
		return "timestamp:" + v.Time.Format(time.RFC3339Nano)
	case *types.Optional:
		if !v.HasValue() {
			return "optional()"
		}
		return "optional(" + show(v.GetValue()) + ")"
	case apiservercel.Quantity:
		return show(&v)
	case *apiservercel.Quantity:
		quantity := v.Quantity.DeepCopy()
		billionths := new(inf.Dec).Round(quantity.AsDec(), 9, inf.RoundUp)
		return "quantity:" + billionths.UnscaledBig().String()
	case apiservercel.IP:
		return "ip:" + v.Addr.String()
	case apiservercel.CIDR:
		return "cidr:" + v.Prefix.String()
	case ref.Type:
		return "type:" + v.TypeName()
	case traits.Mapper:
		var entries []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, show(key)+":"+show(v.Get(key)))
		}
		slices.Sort(entries)
		return "{" + strings.Join(entries, ",") + "}"
	case traits.Lister:
		var items []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, show(it.Next()))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return "other:" + value.Type().TypeName()
}

// quoted is text in quotes; what is not printable ASCII is a code point in braces.
func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		if r == '"' || r == '\\' || r < ' ' || r > '~' {
			fmt.Fprintf(&out, "{%x}", r)
		} else {
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
