// Package keys builds and reads the keys of a DynamoDB table that holds many entity types. A template describes a key,
// formats values as a key, and parses a key back into the values:
//
//	order := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
//
//	key, err := order.Format("acme", uint64(42))   // TENANT#acme#ORDER#0000000042
//	values, err := order.Parse(key)                // "acme", uint64(42)
//	prefix, err := order.Prefix("acme")            // TENANT#acme#ORDER#
//	recent, err := order.From(uint64(100), "acme") // the orders of acme from number 100 on
//
// A [Scheme] names the table's attributes and the delimiter. [Scheme.PKTemplate] and [Scheme.SKTemplate] compile templates
// for it. The package sends no requests and depends on the standard library alone.
//
// # Templates
//
// A template is literal text with fields: {name}, {name:codec} or {name:codec:desc}. Write {{ and }} for literal braces. A
// field's name consists of letters, digits, '_', '-' and '.'; dots separate the elements of a path. Each name may occur
// once, and once more in a shard.
//
//	codec     value                     text in the key                              bytes
//	string    non-empty string          the string, escaped; the default             varies
//	raw       non-empty string          the string; must not contain the delimiter   varies
//	raw       integer                   its digits, without leading zeros            varies
//	rest      non-empty string          the string with delimiters; the last field   varies
//	key       a whole key               the key, unchanged; the only field           varies
//	idN       string of N bytes         the string, escaped                          N (1..2048) before escaping
//	uintN     unsigned, below 10^N      N decimal digits                             N (1..20)
//	intN      -10^N < v < 10^N          v + 10^N as N+1 decimal digits               N+1 (N is 1..19)
//	float     float64 but NaN           16 hex digits                                16
//	bool      bool                      0 or 1                                       1
//	time      time.Time                 2006-01-02T15:04:05.000000000Z               30
//	time-ms   whole milliseconds        2006-01-02T15:04:05.000Z                     24
//	time-s    whole seconds             2006-01-02T15:04:05Z                         20
//	date      midnight UTC              2006-01-02                                   10
//	shardN    any of the above          FNV-1a of the value modulo N                 digits of N-1 (N is 2..1000)
//
// Times are written in UTC and cover the years 0000 to 9999. The first digit of an intN is its sign: with int4, -1 is 09999
// and 42 is 10042.
//
// Numbers, bools and times have a descending variant, such as {placed:time-s:desc}. It replaces every digit by its
// complement (9 minus the digit; 15 minus it in a float, 1 minus it in a bool), so the greatest value sorts first.
//
// # Shards
//
// {id:shard16} spreads a hot partition over 16 keys. It stands for a number from 0 to 15 that is computed from the value of
// id. [Template.Shards] lists the keys or prefixes that a reader has to query to see all shards. A template has at most one
// shard.
//
// If id also occurs elsewhere in the template, Parse checks the number. If it does not, Format needs its value but Parse
// cannot return it ([Field.Computed]).
//
// # Guarantees
//
//   - Reversible. Parse returns the values that Format was given, as string, uint64, int64, float64, bool or time.Time in
//     UTC; an integer in a raw field comes back as its digits, a string. It accepts only keys that Format can produce.
//   - Injective. Two different lists of values never give the same key, and a value cannot imitate the structure of a key: a
//     tenant named "a#ORDER#1" is escaped and stays a tenant. [NewTemplate] refuses a template in which the end of a field
//     would be ambiguous. See the exceptions below.
//   - Ordered. Values of one codec sort in the key as they sort by value; with desc, in reverse. Strings sort as bytes, and
//     so do integers in a raw field: no range is bounded by them.
//   - Exact. A number or time that does not fit its codec is an error. Nothing is widened, rounded or cut off.
//   - A prefix ends at a delimiter, so the prefix for order 1 does not match order 10.
//   - A value that contains neither delimiter nor escape byte is unchanged in the key.
//   - Private. Errors name the template, the field and the Go type, but contain no value and no key. A [Key] or [Range]
//     prints as its lengths only, with every verb of fmt and as a value in log/slog. Two ways of printing do not ask it, and
//     show the text: fmt for an unexported field of a struct, and slog's JSONHandler for a key inside of another value.
//
// # Not guaranteed
//
//   - A key field accepts any text, and so does a rest below the fields before it. Give a key field only keys that a
//     template or the table produced, never user input.
//   - With a computed field, keys are injective in the other fields only.
//   - Two templates can produce the same key, and one prefix can begin with another. [Overlap] detects both.
//     [Template.Only] and [Template.Except] tell such templates apart by a pattern.
//   - A range over the keys of one template can contain keys of another. Check each key with [Template.Matches].
//   - Keys whose strings contain bytes below the delimiter may not sort by their list of values. REFERENCE.md has
//     the exact rule.
//
// # Errors
//
// All errors are of type *[Error] and wrap one of the Err values, for [errors.Is]. They occur before any request is made. Only
// [MustTemplate] panics.
//
// # Cost
//
// Compile a template once; it is safe for concurrent use. [Template.Format] allocates once for a key of at most 128 bytes. [Template.Append]
// does not allocate. [Template.Matches] allocates only for values with an escape sequence. The package needs no request, no capacity unit
// and no permission.
//
// REFERENCE.md, in this package's directory, describes escaping, the order of composite keys, keys that other programs
// wrote, and how shards are computed.
package keys
