// Package keys builds and reads the keys of a table that holds many entity types: attribute naming ([Scheme]), key
// templates ([Template]), escaping, codecs whose byte order is the value's order, prefixes and ranges. It is pure
// computation on the standard library; it sends no request and knows no database client.
//
//	order := keys.MustTemplate("TENANT#{tenant}#ORDER#{seq:uint10}")
//	key, err := order.Format("acme", uint64(42)) // TENANT#acme#ORDER#0000000042
//	values, err := order.Parse(key)              // "acme", uint64(42)
//
// # Template text
//
// A template is literal text with fields: {name}, {name:codec} or {name:codec:desc}. {{ and }} stand for literal braces.
// A name consists of letters, digits, '_', '-' and '.'; dots separate the elements of a path. A name may stand once, and
// once more in a shard.
//
//	codec         value                     text in the key                          width
//	string        non-empty string          the string, escaped (the default)        varies
//	raw           non-empty string          the string; a delimiter in it is refused varies
//	rest          non-empty string          the string, delimiters too; stands last  varies
//	key           a whole key               the key as it is; stands alone, no prefix varies
//	idN           string of N bytes         the string, escaped                      N (1..2048) before escaping
//	uintN         unsigned, below 10^N      N decimal digits                         N (1..20)
//	intN          -10^N < v < 10^N          v + 10^N as N+1 decimal digits           N+1 (N is 1..19)
//	float         float64 but NaN           16 hex digits                            16
//	bool          bool                      0 or 1                                   1
//	time          time.Time                 2006-01-02T15:04:05.000000000Z           30
//	time-ms       whole milliseconds        2006-01-02T15:04:05.000Z                 24
//	time-s        whole seconds             2006-01-02T15:04:05Z                     20
//	date          midnight UTC              2006-01-02                               10
//	shardN        any of the above          FNV-1a of the value modulo N             digits of N-1 (N is 2..1000)
//
// All numeric and time codecs have a descending variant, {placed:time-s:desc}: every digit is replaced by its complement
// (9 minus the digit, 15 for hex, 1 for bool), so that the newest or greatest comes first. Times are written in UTC and hold the
// years 0000 to 9999. In an intN key the first digit is the sign: with int4, -1 is 09999 and 42 is 10042.
//
// # Guarantees
//
//   - Reversible: Parse returns what Format was given, as string, uint64, int64, float64, bool or time.Time in UTC, and
//     Parse accepts only keys that Format produces.
//   - Injective: two different lists of values never give one key (but see shards below). The delimiter and an escape byte
//     next to it are escaped inside values, so a value cannot forge structure: a tenant "a#ORDER#1" stays a tenant.
//     [NewTemplate] refuses text in which the end of a field could not be told. The key codec is the exception: it takes
//     over any key, structure included, so only give it keys that a template or the table produced, never input. A rest
//     takes structure too, but only below the fields before it: [Overlap] tells which templates it shares keys with.
//   - Ordered: for each codec, comparing encoded values as bytes gives the order of the values (the reverse for desc);
//     strings, raw values and ids compare as bytes. Number and time values that do not fit are errors; nothing is
//     widened, rounded or cut off.
//   - A prefix made from some of a template's fields ends at a delimiter: the prefix for order 1 does not match order 10.
//   - A value without delimiter and escape byte stands in the key unchanged.
//   - Errors are *[Error]. They name template, field and Go type; they never contain a value or a key. A [Key] or [Range] prints
//     as its lengths, with every verb of fmt and in log/slog; its fields are plain strings.
//
// # Order of composite keys
//
// Keys of one template have the order of their tuples of values when no string or raw value contains a byte below the
// delimiter. For '#' those bytes are the control characters, space, '!' and '"'; for '|' and '~' they include all letters
// and digits, so a low delimiter is the better choice. The reason is that a value which is a prefix of another one is
// followed by the delimiter: "a#" sorts after "a b#" because the space sorts before '#'. The last field of a template is
// exempt if no text follows it, and so are all fixed-width codecs. With the few delimiters whose escape byte lies below
// them (see below) values must be free of the delimiter too. The order of single values, above, holds without any of
// these conditions.
//
// # Escaping
//
// The escape byte E is the byte after the delimiter D, or the one before it where that one is a letter, a digit, a brace or
// not printable: '$' for '#', ';' for ':', '.' for '/'. '|' has braces on both sides and takes '}'; '~' takes '}' also.
// The lower of D and E becomes E0, the higher E1. E takes D's place in the order of bytes, which
// is why the encoding keeps that order, and D itself never occurs in an encoded string.
//
// The texts of the time codecs contain '-', ':' and '.', also if one of these is the delimiter. That is harmless to parsing,
// since their width is fixed, and [Overlap] takes it into account.
//
// # Keys made by hand
//
// The raw codec reproduces, byte for byte, keys that another program concatenated, with the scheme's delimiter and prefix set to
// that program's. It is checked: a value with the delimiter in it, which would have read as two, is refused with
// [ErrDelimiter]. The escape byte has no meaning in it. A delimiter of several bytes, "::", is its first byte, ':', spelled
// out in the template, "A::{a:raw}::B"; values must not contain that byte. Where the last value may contain it, as an
// address in "DE#Berlin#Allee #5" does, it is a rest: "{country:raw}#{city:raw}#{address:rest}" gives it back whole, since no
// raw value before it has a delimiter. Numbers without leading zeros are strings here.
// Key attributes are strings: a table whose keys are numbers or binary cannot be described.
//
// # Shards
//
// {id:shard16} spreads a hot partition: it stands for a number from 0 to 15, computed from the value of id and never
// passed around. If id stands elsewhere in the template, Parse checks the number. If not, id is a value that Format needs
// and Parse cannot return (Field.Computed), and keys are injective in the other fields only. [Template.Shards] lists the
// variants for reading all of them. A template has at most one shard. The computation will not change: 64-bit FNV-1a over
// the value's text (a string as it is, decimal digits of an integer, true or false, strconv's shortest 'g' form of a float64,
// the text of the time codec), the two halves xor-ed to 32 bits, modulo N.
//
// # Not guaranteed
//
// Nothing here stops two templates from sharing a key space, nor two prefixes of which one begins with the other; ask
// [Overlap]. Patterns tell such templates apart: [Template.Only] and [Template.Except]. Key order across templates is the
// order of bytes, so a range over one template's field can contain keys of another template; check with Matches.
//
// # Failure handling
//
// All checks happen before any request is made. [Error] can be inspected with errors.As, its cause with errors.Is and the
// Err… values. Nothing panics but [MustTemplate].
//
// # Cost
//
// A template is compiled once and is safe for concurrent use afterwards. Format makes one allocation, the key, as long as
// that has up to 128 bytes; Append makes none; Matches makes none unless a value contains an escape. No request,
// no capacity unit, no permission is needed.
package keys
