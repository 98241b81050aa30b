package codec_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Types that people write by hand, which reflect cannot make.

type (
	word   string
	count  int16
	letter byte
	blob   []byte
	path   []string
	bag    map[string]int
	yes    bool
	void   struct{}
)

// cents has guregu/dynamo's methods, on the value and on the pointer.
type cents struct{ n int64 }

func (c cents) MarshalDynamo() (types.AttributeValue, error) {
	if c.n == 13 {
		return nil, errors.New("unlucky")
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(c.n, 10)}, nil
}

func (c *cents) UnmarshalDynamo(av types.AttributeValue) (err error) {
	n, ok := av.(*types.AttributeValueMemberN)
	if !ok {
		return errors.New("no number")
	}
	c.n, err = strconv.ParseInt(n.Value, 10, 64)
	return err
}

// sdk has the SDK's methods, both on the pointer. guregu/dynamo does not find them for a value, and calls them for nil.
type sdk struct{ V string }

func (s *sdk) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if s == nil {
		return nil, nil
	}
	return &types.AttributeValueMemberS{Value: "<" + s.V + ">"}, nil
}

func (s *sdk) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error {
	if text, ok := av.(*types.AttributeValueMemberS); ok {
		s.V = strings.Trim(text.Value, "<>")
		return nil
	}
	return errors.New("no text")
}

// pair is text, also as a key of a map.
type pair struct{ A, B uint8 }

func (p pair) MarshalText() ([]byte, error) {
	if p == (pair{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d-%d", p.A, p.B), nil
}

func (p *pair) UnmarshalText(b []byte) error {
	*p = pair{}
	if len(b) == 0 {
		return nil
	}
	_, err := fmt.Sscanf(string(b), "%d-%d", &p.A, &p.B)
	return err
}

// span says itself when it is zero.
type span struct{ From, To int }

func (s span) IsZero() bool { return s.From == s.To }

type node struct {
	Name string           `dynamo:"name"`
	Next *node            `dynamo:"next"`
	Kids []node           `dynamo:"kids,omitempty"`
	More map[string]*node `dynamo:"more,omitempty"`
}

type base struct {
	By  string `dynamo:"by"`
	Rev int    `dynamo:"rev,omitempty"`
}

type Base2 struct {
	base
	At  time.Time `dynamo:"at,omitempty"`
	Due time.Time `dynamo:"due,unixtime,omitempty"`
}

type embeds struct {
	Base2
	Title string `dynamo:"title"`
	inner int    //nolint:unused // not exported: neither written nor read
}

type embedsPointer struct {
	*Base2
	Title string `dynamo:"title,omitempty"`
}

type Left struct {
	Name string `dynamo:"name"`
	L    int
}
type Right struct {
	Name string `dynamo:"name"`
	R    int
}

// outer has names that hide those of embedded structs.
type outer struct {
	Name  string `dynamo:"name"`
	Other string `dynamo:"L"`
	Left
	*Right
}

type customs struct {
	Price   cents           `dynamo:"price"`
	Maybe   *cents          `dynamo:"maybe,null"`
	Prices  []cents         `dynamo:"prices"`
	Opt     cents           `dynamo:"opt,omitempty"`
	SDKP    *sdk            `dynamo:"sdkp"`
	Pair    pair            `dynamo:"pair"`
	PairE   pair            `dynamo:"paire,allowempty"`
	PairP   *pair           `dynamo:"pairp,omitempty"`
	ByPair  map[pair]string `dynamo:"bypair"`
	PairSet []pair          `dynamo:"pairset,set"`
	PairMap map[pair]bool   `dynamo:"pairmap,set"`
	Span    span            `dynamo:"span,omitempty"`
	SpanP   *span           `dynamo:"spanp,omitempty"`
	Times   []time.Time     `dynamo:"times"`
	TimeP   *time.Time      `dynamo:"timep"`
	UnixP   *time.Time      `dynamo:"unixp,unixtime"`
	ByTime  map[word]*time.Time
	Away    string `dynamo:"-"`
	Dash    string `dynamo:"-,omitempty"`
	private string //nolint:unused // not exported: neither written nor read
}

type collections struct {
	Strings   []string            `dynamo:"strings"`
	NoEmpty   []string            `dynamo:",omitemptyelem"`
	Omit      []string            `dynamo:"omit,omitempty"`
	Sparse    []*int              `dynamo:"sparse,omitemptyelem,omitempty"`
	Deep      [][]string          `dynamo:"deep,omitempty"`
	Maps      []map[string]string `dynamo:"maps,allowemptyelem"`
	Map       map[string]string   `dynamo:"map,allowempty"`
	MapE      map[word][]string   `dynamo:"mape,allowemptyelem"`
	MapO      map[string]base     `dynamo:"mapo,omitemptyelem,omitempty"`
	SS        []string            `dynamo:"ss,set,omitemptyelem"`
	NS        []count             `dynamo:"ns,set,null"`
	FS        []float64           `dynamo:"fs,set"`
	BS        [][]byte            `dynamo:"bs,set"`
	MapSS     map[word]struct{}   `dynamo:"mapss,set"`
	MapNS     map[int64]yes       `dynamo:"mapns,set"`
	MapFS     map[float64]void    `dynamo:"mapfs,set"`
	MapBool   map[string]bool     `dynamo:"mapbool"`
	Bytes     []byte              `dynamo:"bytes,allowempty"`
	Blob      blob                `dynamo:"blob,null"`
	Letters   []letter            `dynamo:"letters"`
	Array     [3]int              `dynamo:"array,omitempty"`
	Hash      [4]byte             `dynamo:"hash"`
	HashN     [2]byte             `dynamo:"hashn,null"`
	Path      path                `dynamo:"path"`
	Bag       bag                 `dynamo:"bag"`
	Any       any                 `dynamo:"any"`
	Anys      []any               `dynamo:"anys"`
	AnyMap    map[string]any      `dynamo:"anymap,omitempty"`
	Structs   []embeds            `dynamo:"structs"`
	Struct    base                `dynamo:"struct,omitempty"`
	Anonymous struct {
		X int `dynamo:"x,omitempty"`
	} `dynamo:"anonymous,omitempty"`
}

// asymmetric types are not read back as they are written.
type asymmetric struct {
	Zero [2]byte `dynamo:"zero,allowempty"`
}

type values struct {
	S *types.AttributeValueMemberS    `dynamo:"s,omitempty"`
	M *types.AttributeValueMemberM    `dynamo:"m,omitempty"`
	N types.AttributeValueMemberN     `dynamo:"n,omitempty"`
	L []*types.AttributeValueMemberSS `dynamo:"l,omitempty"`
}

var named = []reflect.Type{
	reflect.TypeFor[node](), reflect.TypeFor[embeds](), reflect.TypeFor[embedsPointer](), reflect.TypeFor[outer](),
	reflect.TypeFor[customs](), reflect.TypeFor[collections](), reflect.TypeFor[asymmetric](), reflect.TypeFor[values](),
}
