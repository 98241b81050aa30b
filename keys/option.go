package keys

// Option changes how [NewTemplate] compiles a template.
type Option func(*options)

type options struct {
	delim  byte
	limit  int
	prefix string
}

// WithDelimiter sets the byte that ends variable-width fields. It has to be a printable ASCII character other than space,
// letters, digits and braces. Defaults to '#'.
func WithDelimiter(delim byte) Option { return func(o *options) { o.delim = delim } }

// WithLimit sets the greatest length of a key, in bytes after encoding, from 1 to [MaxPK]. Defaults to [MaxPK].
func WithLimit(bytes int) Option { return func(o *options) { o.limit = bytes } }

// WithPrefix puts literal text before every key; braces in it have no meaning. It does not have to end at a delimiter,
// since an existing table's prefix may not; but only then, or if no prefix begins with another, do prefixes keep templates
// apart: with the prefixes "shop" and "shop2" {id} can give one key. [Overlap] tells. Defaults to none.
func WithPrefix(prefix string) Option { return func(o *options) { o.prefix = prefix } }
