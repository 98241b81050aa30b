package keys

// Option changes how [NewTemplate] compiles a template.
type Option func(*options)

type options struct {
	delim  byte
	limit  int
	prefix string
}

// WithDelimiter sets the byte that ends variable-width fields: a printable ASCII character other than a space, a
// letter, a digit or a brace. Defaults to '#'.
func WithDelimiter(delim byte) Option { return func(o *options) { o.delim = delim } }

// WithLimit sets the greatest length of an encoded key, from 1 to [MaxPK] bytes. Defaults to [MaxPK].
func WithLimit(bytes int) Option { return func(o *options) { o.limit = bytes } }

// WithPrefix puts literal text before every key. Braces in it have no meaning. Defaults to none.
//
// End the prefix with the delimiter. A prefix may also end otherwise, as in an existing table. Then templates are kept
// apart only if no prefix begins with another one: with the prefixes "shop" and "shop2", {id} can produce the same key.
// [Overlap] detects this.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }
