package keys_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/keys"
)

var defaults = keys.Scheme{PK: "pk", SK: "sk", Type: "type", TTL: "ttl", Version: "version", Delimiter: '#'}

func TestScheme_ZeroValueStandsForDefaults(t *testing.T) {
	require.NoError(t, keys.Scheme{}.Validate())
	assert.Equal(t, defaults, keys.Scheme{}.WithDefaults())
	own := keys.Scheme{PK: "a", SK: "b", Type: "c", TTL: "d", Version: "e", Delimiter: '|', Prefix: "f"}
	assert.Equal(t, own, own.WithDefaults())
}

func TestScheme_ValidateNamesTheField(t *testing.T) {
	for _, tc := range []struct {
		scheme keys.Scheme
		field  string
		cause  error
	}{
		{keys.Scheme{PK: strings.Repeat("x", 256)}, "PK", keys.ErrTooLong},
		{keys.Scheme{SK: "\xff"}, "SK", keys.ErrInvalidUTF8},
		{keys.Scheme{SK: "pk"}, "SK", keys.ErrDuplicate},
		{keys.Scheme{TTL: "x", Version: "x"}, "Version", keys.ErrDuplicate},
		{keys.Scheme{PK: "type"}, "Type", keys.ErrDuplicate},
		{keys.Scheme{Delimiter: 'a'}, "Delimiter", keys.ErrDelimiter},
		{keys.Scheme{Delimiter: '{'}, "Delimiter", keys.ErrDelimiter},
		{keys.Scheme{Delimiter: 0x80}, "Delimiter", keys.ErrDelimiter},
		{keys.Scheme{Prefix: "\xff"}, "Prefix", keys.ErrInvalidUTF8},
		{keys.Scheme{Prefix: strings.Repeat("x", 2048)}, "Prefix", keys.ErrTooLong},
	} {
		err := tc.scheme.Validate()
		require.ErrorIs(t, err, tc.cause)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, tc.field, ke.Field)
		_, err = tc.scheme.PKTemplate("A")
		require.ErrorIs(t, err, tc.cause)
		_, err = tc.scheme.SKTemplate("A")
		require.ErrorIs(t, err, tc.cause)
	}
	require.NoError(t, keys.Scheme{PK: strings.Repeat("x", 255)}.Validate())
}

func TestParseScheme_ReadsAnExistingNaming(t *testing.T) {
	s, err := keys.ParseScheme([]byte(`{"pk":"PK","sk":"SK","type":"_t","ttl":"expiresAt","version":"_v","delimiter":"|","prefix":"shop/"}`))
	require.NoError(t, err)
	assert.Equal(t, keys.Scheme{PK: "PK", SK: "SK", Type: "_t", TTL: "expiresAt", Version: "_v", Delimiter: '|', Prefix: "shop/"}, s)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	again, err := keys.ParseScheme(data)
	require.NoError(t, err)
	assert.Equal(t, s, again)

	s, err = keys.ParseScheme([]byte(" {} "))
	require.NoError(t, err)
	assert.Equal(t, defaults, s)

	var config struct{ Keys keys.Scheme }
	require.NoError(t, json.Unmarshal([]byte(`{"Keys":{"pk":"PK"}}`), &config))
	assert.Equal(t, keys.Scheme{PK: "PK"}, config.Keys)
	data, err = json.Marshal(config)
	require.NoError(t, err)
	assert.JSONEq(t, `{"Keys":{"pk":"PK"}}`, string(data))
	require.NoError(t, json.Unmarshal([]byte(`{"Keys":null}`), &config))
	assert.Equal(t, keys.Scheme{PK: "PK"}, config.Keys)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"Keys":{"PK":"PK"}}`), &config), keys.ErrUnknownField)
	_, err = json.Marshal(keys.Scheme{Delimiter: 0xff})
	require.ErrorIs(t, err, keys.ErrDelimiter)
	for _, s := range []keys.Scheme{{PK: "\xff"}, {SK: "\xff"}, {Type: "\xff"}, {TTL: "\xff"}, {Version: "\xff"}, {Prefix: "\xff"}} {
		_, err = json.Marshal(s)
		require.ErrorIs(t, err, keys.ErrInvalidUTF8)
	}
}

func TestParseScheme_RefusesNamingTheField(t *testing.T) {
	for data, want := range map[string]struct {
		field string
		cause error
	}{
		``:                              {"", keys.ErrSyntax},
		`[]`:                            {"", keys.ErrSyntax},
		`"pk"`:                          {"", keys.ErrSyntax},
		`{"pk":"a"`:                     {"", keys.ErrSyntax},
		`{"pk"`:                         {"pk", keys.ErrSyntax},
		`{"pk" "a"}`:                    {"pk", keys.ErrSyntax},
		`{"pk":"a"} {}`:                 {"", keys.ErrSyntax},
		`{"pk":"a",}`:                   {"", keys.ErrSyntax},
		`{pk:"a"}`:                      {"", keys.ErrSyntax},
		`{"pk":1}`:                      {"pk", keys.ErrType},
		`{"pk":null}`:                   {"pk", keys.ErrType},
		`{"pk":{}}`:                     {"pk", keys.ErrType},
		`{"PK":"a"}`:                    {"PK", keys.ErrUnknownField},
		`{"primary":"a"}`:               {"primary", keys.ErrUnknownField},
		`{"pk":"a","pk":"b"}`:           {"pk", keys.ErrDuplicate},
		`{"pk":""}`:                     {"pk", keys.ErrEmpty},
		`{"delimiter":""}`:              {"delimiter", keys.ErrEmpty},
		`{"delimiter":"##"}`:            {"delimiter", keys.ErrDelimiter},
		`{"delimiter":"é"}`:             {"delimiter", keys.ErrDelimiter},
		`{"delimiter":"\u0000"}`:        {"delimiter", keys.ErrDelimiter},
		`{"delimiter":"a"}`:             {"Delimiter", keys.ErrDelimiter},
		`{"pk":"sk"}`:                   {"SK", keys.ErrDuplicate},
		"{\"pk\":\"\xff\"}":             {"", keys.ErrInvalidUTF8},
		`{"prefix":"","pk":"a","sk":1}`: {"sk", keys.ErrType},
	} {
		s, err := keys.ParseScheme([]byte(data))
		require.ErrorIs(t, err, want.cause, data)
		assert.Zero(t, s)
		var ke *keys.Error
		require.ErrorAs(t, err, &ke)
		assert.Equal(t, want.field, ke.Field, data)
	}
}

func TestScheme_TemplatesFollowTheNaming(t *testing.T) {
	s := keys.Scheme{Delimiter: '|', Prefix: "shop/"}
	pk, err := s.PKTemplate("TENANT|{t}")
	require.NoError(t, err)
	key, err := pk.Format("a|b#")
	require.NoError(t, err)
	assert.Equal(t, "shop/TENANT|a}0b#", key)
	sk, err := s.SKTemplate("ORDER|{n:uint4}")
	require.NoError(t, err)
	key, err = sk.Format(7)
	require.NoError(t, err)
	assert.Equal(t, "ORDER|0007", key, "the prefix is for partition keys")
	_, err = s.SKTemplate("{a}#{b}")
	require.ErrorIs(t, err, keys.ErrAmbiguous)
}
