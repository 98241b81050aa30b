package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Environment variables. envKeys, and envLock with "_", are prefixes of variables for single settings of keys and locks.
const (
	envTable  = "MORTISE_TABLE"
	envScheme = "MORTISE_SCHEME"
	envEngine = "MORTISE_ENGINE"
	envKeys   = "MORTISE_KEYS_"
	envLock   = "MORTISE_LOCK" // as a variable: the lock's name, which exec's command gets

	envFence = "MORTISE_FENCE"
	envGuard = "MORTISE_GUARD"
	envLost  = "MORTISE_LOST"
)

// Values of --engine.
const (
	engineAWS  = "aws"
	engineDemo = "demo"
	demoTable  = "mortise-demo"
)

// closing bounds the time for giving up locks, and for shutting a server down.
const closing = 10 * time.Second

// defaultLease is the default of package lock. It is set explicitly, since exec computes its times from the lease.
const defaultLease = 20 * time.Second

// settings identify the table, and the names that the application uses in it.
type settings struct {
	engine string
	file   string // path of the scheme file; empty if there is none
	schema table.Schema
	locks  lock.Config
}

// schemeFile is the content of --scheme.
type schemeFile struct {
	Table   string      `json:"table"`
	Keys    keys.Scheme `json:"keys"`
	NoTTL   bool        `json:"no_ttl"`
	Lock    lock.Config `json:"lock"`
	Indexes []struct {
		Name    string   `json:"name"`
		PK      string   `json:"pk"`
		SK      string   `json:"sk"`
		PKType  string   `json:"pk_type"`
		SKType  string   `json:"sk_type"`
		Local   bool     `json:"local"`
		Include []string `json:"include"`
	} `json:"indexes"`
}

// settings reads flags, the environment and the scheme file. Flags go before the environment, and that before the file.
func (c *call) settings() (s settings, err error) {
	if s.file = cmp.Or(c.scheme, c.env(envScheme)); c.file == nil {
		c.file = &schemeFile{}
		if s.file != "" {
			*c.file, c.fileError = readScheme(s.file)
		}
	}
	if c.fileError != nil {
		return s, c.fileError
	}
	file := *c.file
	if err := c.overlay(&file); err != nil {
		return s, err
	}
	if s.engine, err = c.engineName(); err != nil {
		return s, err
	}
	name := cmp.Or(c.table, c.env(envTable), file.Table)
	if name == "" && s.engine == engineDemo {
		name = demoTable
	}
	if name == "" {
		return s, usagef(`no table: name it with --table, %s, or "table" in a --scheme file`, envTable)
	}
	s.schema = table.Schema{Name: name, Keys: file.Keys.WithDefaults(), NoTTL: file.NoTTL, MustExist: s.engine != engineDemo}
	for _, x := range file.Indexes {
		s.schema.Indexes = append(s.schema.Indexes, table.Index{
			Name: x.Name, PK: x.PK, SK: x.SK, PKType: table.AttributeType(x.PKType), SKType: table.AttributeType(x.SKType), Local: x.Local, Include: x.Include,
		})
	}
	if err := s.schema.Validate(); err != nil {
		return s, usagef("%w", err)
	}
	s.locks = file.Lock
	s.locks.Lease = cmp.Or(s.locks.Lease, defaultLease)
	if c.leaseLength != nil {
		s.locks.Lease = *c.leaseLength
		if *c.leaseLength < lock.MinLease || *c.leaseLength > lock.MaxLease { // 0 would be the default
			return s, usagef("--lease %v: want %v to %v", *c.leaseLength, lock.MinLease, lock.MaxLease)
		}
	}
	if err := s.locks.Validate(); err != nil {
		return s, usagef("%w", err)
	}
	return s, nil
}

// readFile reads a file of at most so many bytes: a wrong name, such as that of a device, must not use up the memory.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // a file that the caller names
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return readAtMost(f, name, most)
}

func readAtMost(r io.Reader, name string, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: more than %s", name, bytesText(most))
	}
	return text, err
}

const maxScheme = 1 << 20 // bytes

// readScheme reads the file of --scheme. It refuses unknown and repeated members; in keys and lock, their UnmarshalJSON does.
func readScheme(name string) (file schemeFile, err error) {
	text, err := readFile(name, maxScheme)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = fmt.Errorf("%s: empty", name)
	}
	if err != nil {
		return file, usagef("--scheme: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var typ *json.UnmarshalTypeError
	if err := dec.Decode(&file); errors.As(err, &typ) {
		return file, usagef("--scheme %s: %s: it cannot be of the type %s", name, cmp.Or(typ.Field, "the whole"), typ.Value)
	} else if err != nil {
		return file, usagef("--scheme %s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) { // not dec.More, which takes a closing brace for an end
		return file, usagef("--scheme %s: text after the JSON object", name)
	}
	if err := exact(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return file, usagef("--scheme %s: %w", name, err)
	}
	return file, nil
}

// exact refuses repeated members in a JSON value, at any depth, and names that are not in lower case, as all of a scheme file are.
// Decoding into a struct accepts both, since it takes names in any case, and the last of several.
func exact(dec *json.Decoder) error {
	open, err := dec.Token()
	if _, ok := open.(json.Delim); err != nil || !ok {
		return err
	}
	seen := map[any]bool{}
	for dec.More() {
		if open == json.Delim('{') {
			name, err := dec.Token()
			switch {
			case err != nil:
				return err
			case strings.Trim(name.(string), "abcdefghijklmnopqrstuvwxyz_") != "":
				return fmt.Errorf("unknown field %q: names are in lower case", name)
			case seen[name]:
				return fmt.Errorf("field %q is set twice", name)
			}
			seen[name] = true
		}
		if err := exact(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// overlay replaces settings from the file by those from the environment.
func (c *call) overlay(file *schemeFile) error {
	set := map[string]string{}
	for _, entry := range c.environ {
		variable, value, _ := strings.Cut(entry, "=")
		if name, ok := strings.CutPrefix(variable, envKeys); ok && value != "" {
			set[strings.ToLower(name)] = value
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		return err
	}
	var named keys.Scheme
	if err := named.UnmarshalJSON(text); err != nil {
		return usagef("%s…: %w", envKeys, err)
	}
	k := &file.Keys
	*k = keys.Scheme{
		PK: cmp.Or(named.PK, k.PK), SK: cmp.Or(named.SK, k.SK), Type: cmp.Or(named.Type, k.Type), TTL: cmp.Or(named.TTL, k.TTL),
		Version: cmp.Or(named.Version, k.Version), Delimiter: cmp.Or(named.Delimiter, k.Delimiter), Prefix: cmp.Or(named.Prefix, k.Prefix),
	}
	locks, err := lock.ConfigFromEnviron(envLock, c.environ)
	if err != nil {
		return usagef("%w", err)
	}
	if text, err = locks.MarshalJSON(); err != nil {
		return err
	}
	if err := file.Lock.UnmarshalJSON(text); err != nil { // settings that text does not have stay as they are
		return usagef("%w", err) // one of the environment does not go with one of the file
	}
	return nil
}

// engineName returns aws, demo, or a URL. The error does not repeat the name, which may have a password.
func (c *call) engineName() (string, error) {
	name := cmp.Or(c.engine, c.env(envEngine), engineAWS)
	if name == engineAWS || name == engineDemo {
		return name, nil
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", usagef("--engine or %s: want %s, %s, or a URL without user and query, such as http://127.0.0.1:8000", envEngine, engineAWS, engineDemo)
	}
	return name, nil
}

// store is the open table, and a client of its locks.
type store struct {
	settings
	endpoint string // value of --engine for other processes, if shared: a URL, or aws
	client   *dynamodb.Client
	table    *table.Table
	locks    *lock.Client
	end      func() error // ends the engine
}

// open opens the table that the flags name. With shared, other processes can reach the demo engine of this process.
func (c *call) open(ctx context.Context, shared bool) (*store, error) {
	s, err := c.settings()
	if err != nil {
		return nil, err
	}
	return s.open(ctx, shared)
}

func (s settings) open(ctx context.Context, shared bool) (*store, error) {
	o := &store{settings: s, endpoint: s.engine}
	var target engines.Target
	switch s.engine {
	case engineAWS:
		target.AWS = true
	case engineDemo:
	default:
		target.Endpoint = s.engine
	}
	client, end, err := target.Open(ctx, shared)
	if err != nil {
		return nil, err
	}
	o.client, o.end = client, end
	if s.engine == engineDemo && shared {
		o.endpoint = target.Endpoint
	}
	if o.table, err = table.Open(client, s.schema); err == nil && s.engine == engineDemo {
		err = o.table.Ensure(ctx)
	}
	if err == nil {
		// The commands print what people have to know. A wrong setting is, for example, an index that the scheme lacks.
		s.locks.Logger = slog.New(slog.DiscardHandler)
		if o.locks, err = lock.New(o.table, s.locks); errors.Is(err, lock.ErrInvalid) {
			err = usagef("%w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return o, nil
}

// close gives up all locks, even if ctx has ended, and ends the engine.
func (s *store) close(ctx context.Context) error { return s.closeWithin(ctx, closing) }

func (s *store) closeWithin(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return errors.Join(s.locks.Close(ctx), s.end())
}

// inherited returns the environment variables with which programs that exec starts find the same table.
func (s *store) inherited() ([]string, error) {
	list := []string{envEngine + "=" + s.endpoint, envTable + "=" + s.table.Name()}
	if s.file != "" {
		path, err := filepath.Abs(s.file)
		if err != nil {
			return nil, fmt.Errorf("--scheme: %w", err)
		}
		list = append(list, envScheme+"="+path)
	}
	return list, nil
}

// target returns the lock that the command names.
func (c *call) target() lock.Target {
	if !c.beside.IsZero() {
		return lock.Beside(c.beside)
	}
	return lock.Name(c.operands[0])
}

// targetName returns the lock's name for people.
func (c *call) targetName() string {
	if !c.beside.IsZero() {
		return c.beside.PK + " " + c.beside.SK
	}
	return c.operands[0]
}
