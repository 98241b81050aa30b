package adoption

import (
	"bufio"
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/internal/attrvalue"
	"github.com/mortise-go/mortise/internal/engines"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/table"
)

// electroRows are rows that ElectroDB 3.9.3 wrote, with the models of its example "version control".
//
//go:embed testdata/electrodb.jsonl
var electroRows []byte

// folded is a text that ElectroDB writes in lower case into keys, and unchanged into attributes.
type folded string

func (f folded) MarshalText() ([]byte, error) { return []byte(strings.ToLower(string(f))), nil }

func (f *folded) UnmarshalText(text []byte) error {
	*f = folded(text)
	return nil
}

func (f folded) MarshalDynamo() (types.AttributeValue, error) {
	if f == "" {
		return nil, nil
	}
	return text(string(f)), nil
}

func (f *folded) UnmarshalDynamo(av types.AttributeValue) error {
	if s, ok := av.(*types.AttributeValueMemberS); ok {
		*f = folded(s.Value)
	}
	return nil
}

// flag is a bool that ElectroDB writes as a word into keys.
type flag bool

func (f flag) MarshalText() ([]byte, error) {
	if f {
		return []byte("true"), nil
	}
	return []byte("false"), nil
}

func (f *flag) UnmarshalText(text []byte) error {
	*f = string(text) == "true"
	return nil
}

func (f flag) MarshalDynamo() (types.AttributeValue, error) {
	return &types.AttributeValueMemberBOOL{Value: bool(f)}, nil
}

func (f *flag) UnmarshalDynamo(av types.AttributeValue) error {
	if b, ok := av.(*types.AttributeValueMemberBOOL); ok {
		*f = flag(b.Value)
	}
	return nil
}

// electro has what every row of ElectroDB has.
type electro struct {
	Model   string `dynamo:"__edb_v__"`
	Created folded `dynamo:"createdAt"`
	Updated folded `dynamo:"updatedAt"`
}

type edbUser struct {
	electro
	Username  folded   `dynamo:"username"`
	FullName  string   `dynamo:"fullName"`
	Bio       string   `dynamo:"bio,omitempty"`
	Location  string   `dynamo:"location,omitempty"`
	Photo     string   `dynamo:"photo,omitempty"`
	Followers []string `dynamo:"followers,set,omitempty"`
	Following []string `dynamo:"following,set,omitempty"`
}

type edbRepository struct {
	electro
	Name        folded   `dynamo:"repoName"`
	Owner       folded   `dynamo:"repoOwner"`
	About       string   `dynamo:"about"`
	Username    folded   `dynamo:"username"`
	Description string   `dynamo:"description,omitempty"`
	Private     flag     `dynamo:"isPrivate"`
	License     string   `dynamo:"license"`
	Branch      string   `dynamo:"defaultBranch"`
	Topics      []string `dynamo:"topics,set,omitempty"`
}

type edbIssue struct {
	electro
	Number   folded `dynamo:"issueNumber"`
	Name     folded `dynamo:"repoName"`
	Owner    folded `dynamo:"repoOwner"`
	Username folded `dynamo:"username"`
	Ticket   folded `dynamo:"ticketNumber"`
	Kind     string `dynamo:"ticketType"`
	Status   folded `dynamo:"status"`
	Subject  string `dynamo:"subject"`
	Body     string `dynamo:"body"`
}

type edbComment struct {
	electro
	Number   folded `dynamo:"issueNumber"`
	ID       folded `dynamo:"commentId"`
	Name     folded `dynamo:"repoName"`
	Owner    folded `dynamo:"repoOwner"`
	Username folded `dynamo:"username"`
	ReplyTo  folded `dynamo:"replyTo,omitempty"`
	Viewed   folded `dynamo:"replyViewed"`
	Body     string `dynamo:"body"`
}

type edbSubscription struct {
	electro
	Name     folded `dynamo:"repoName"`
	Owner    folded `dynamo:"repoOwner"`
	Username folded `dynamo:"username"`
	Ticket   folded `dynamo:"ticketNumber"`
	Kind     folded `dynamo:"ticketType"`
}

type electroTable struct {
	*table.Table
	rows          []table.Item
	users         *entity.Entity[edbUser]
	repositories  *entity.Entity[edbRepository]
	issues        *entity.Entity[edbIssue]
	comments      *entity.Entity[edbComment]
	subscriptions *entity.Entity[edbSubscription]
}

func electroDB(t *testing.T, e *engines.Engine) (d electroTable) {
	t.Helper()
	var indexes []table.Index
	for _, n := range []string{"gsi1", "gsi2", "gsi3", "gsi4"} {
		indexes = append(indexes, table.Index{Name: n + "pk-" + n + "sk-index", PK: n + "pk", SK: n + "sk"})
	}
	var err error
	d.Table, err = table.Open(e.Client(), table.Schema{
		Name: e.TableName(t), Keys: keys.Scheme{PK: "pk", SK: "sk", Type: "__edb_e__", Version: "rev"}, Indexes: indexes, NoTTL: true,
	})
	require.NoError(t, err)
	require.NoError(t, d.Ensure(t.Context()))
	lines := bufio.NewScanner(bytes.NewReader(electroRows))
	for lines.Scan() {
		row, err := table.ItemFromJSON(lines.Bytes())
		require.NoError(t, err)
		d.rows = append(d.rows, row)
		require.NoError(t, d.Write(t.Context(), table.Put(row)))
	}
	const service, user = "$version-control", "$version-control#username_{username:rest}"
	const repo = service + "#repoowner_{repoOwner:raw}#reponame_{repoName:rest}"
	const below = service + "#repoowner_{repoOwner:raw}#reponame_{repoName:raw}"
	d.users, err = entity.Define(d.Table, entity.Spec[edbUser]{
		Type: "user", PK: user, SK: "$overview#user_1",
		Indexes: []entity.Index[edbUser]{
			{Name: "gsi1pk-gsi1sk-index", PK: user, SK: "$owned#user_1"},
			{Name: "gsi3pk-gsi3sk-index", PK: user, SK: "$watching#user_1"},
		},
	})
	require.NoError(t, err)
	d.repositories, err = entity.Define(d.Table, entity.Spec[edbRepository]{
		Type: "Repository", PK: service + "#repoowner_{repoOwner:rest}", SK: "$alerts#repository_1#reponame_{repoName:rest}",
		Indexes: []entity.Index[edbRepository]{
			{Name: "gsi1pk-gsi1sk-index", PK: user, SK: "$owned#repository_1#isprivate_{isPrivate:raw}#createdat_{createdAt:raw}"},
		},
	})
	require.NoError(t, err)
	d.issues, err = entity.Define(d.Table, entity.Spec[edbIssue]{
		Type: "issue", PK: below + "#issuenumber_{issueNumber:rest}", SK: "$issuereview#issue_1",
		Indexes: []entity.Index[edbIssue]{
			{Name: "gsi1pk-gsi1sk-index", PK: user, SK: "$owned#managed#issue_1#status_{status:raw}#createdat_{createdAt:raw}"},
			{Name: "gsi2pk-gsi2sk-index", PK: repo, SK: "$activity#issue_1#status_{status:raw}#createdat_{createdAt:raw}"},
			{Name: "gsi4pk-gsi4sk-index", PK: below + "#ticketnumber_{ticketNumber:rest}", SK: "$subscribers#issue_1"},
		},
	})
	require.NoError(t, err)
	d.comments, err = entity.Define(d.Table, entity.Spec[edbComment]{
		Type: "issue-comment", PK: below + "#issuenumber_{issueNumber:rest}", SK: "$issuereview#issue-comment_1#commentid_{commentId:rest}",
		Indexes: []entity.Index[edbComment]{
			{
				Name: "gsi1pk-gsi1sk-index", PK: user,
				SK: "$conversations#issue-comment_1#repoowner_{repoOwner:raw}#reponame_{repoName:raw}#issuenumber_{issueNumber:rest}",
			},
			{
				Name: "gsi2pk-gsi2sk-index", PK: service + "#replyto_{replyTo:rest}",
				SK: "$inbox#issue-comment_1#updatedat_{updatedAt:raw}#replyviewed_{replyViewed:rest}",
			},
		},
	})
	require.NoError(t, err)
	d.subscriptions, err = entity.Define(d.Table, entity.Spec[edbSubscription]{
		Type: "subscription", PK: repo, SK: "$subscription_1#username_{username:raw}#tickettype_{ticketType:raw}#ticketnumber_{ticketNumber:rest}",
		Indexes: []entity.Index[edbSubscription]{
			{Name: "gsi3pk-gsi3sk-index", PK: user, SK: "$watching#subscription_1#tickettype_{ticketType:raw}#ticketnumber_{ticketNumber:rest}"},
			{
				Name: "gsi4pk-gsi4sk-index", PK: below + "#ticketnumber_{ticketNumber:rest}",
				SK: "$subscribers#subscription_1#tickettype_{ticketType:raw}#username_{username:rest}",
			},
		},
	})
	require.NoError(t, err)
	return d
}

// key returns the key of the row of ElectroDB that has all of the given parts in its key.
func (d electroTable) key(t *testing.T, parts ...string) keys.Key {
	t.Helper()
	var found []keys.Key
rows:
	for _, row := range d.rows {
		key, err := d.KeyOf(row)
		require.NoError(t, err)
		for _, part := range parts {
			if !strings.Contains(key.PK+" "+key.SK, part) {
				continue rows
			}
		}
		found = append(found, key)
	}
	require.Len(t, found, 1)
	return found[0]
}

// requireRewritten deletes the rows of e, creates them again, and requires that they are what ElectroDB wrote. except are keys of
// rows that cannot be the same.
func requireRewritten[T any](t *testing.T, d electroTable, e *entity.Entity[T], except ...keys.Key) {
	t.Helper()
	for _, row := range d.rows {
		key, err := d.KeyOf(row)
		require.NoError(t, err)
		if !e.Owns(row) || slices.Contains(except, key) {
			continue
		}
		o, err := e.Decode(row)
		require.NoError(t, err)
		require.NoError(t, e.Delete(t.Context(), o))
		_, err = e.Create(t.Context(), o)
		require.NoError(t, err)
		got, err := d.Get(t.Context(), key, true)
		require.NoError(t, err)
		require.True(t, attrvalue.SameItem(row, got), "ElectroDB wrote %v, Create %v", row, got)
	}
}

func TestElectroDB_RowsAreThoseThatElectroDBWrites(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		d := electroDB(t, e)
		requireRewritten(t, d, d.users)
		requireRewritten(t, d, d.repositories)
		requireRewritten(t, d, d.issues)
		// ElectroDB writes an index key without the value that is missing. Here such a row is not in the index.
		requireRewritten(t, d, d.comments, d.key(t, "commentid_c2"))
		// ElectroDB concatenates values with the delimiter. Here they are refused, except at the end of a key.
		noTicket, hash := d.key(t, "tickettype_##"), d.key(t, "username_joe#1#")
		requireRewritten(t, d, d.subscriptions, noTicket, hash)
		for _, key := range []keys.Key{noTicket, hash} {
			row, err := d.Get(t.Context(), key, true)
			require.NoError(t, err)
			o, err := d.subscriptions.Decode(row)
			require.NoError(t, err, "they can be read, since their attributes have the values")
			require.ErrorIs(t, d.subscriptions.Delete(t.Context(), o), keys.ErrDelimiter)
		}
	})
}

func TestElectroDB_IndexKeysFollowAnUpdate(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		d := electroDB(t, e)
		key := d.key(t, "issue_1", "issuenumber_0007")
		want, err := d.Get(t.Context(), key, true)
		require.NoError(t, err)
		_, err = d.issues.Update(t.Context(), edbIssue{Owner: "ADA.L", Name: "engine", Number: "0007"},
			entity.Set("status", "1"), entity.Set("updatedAt", "2026-12-01T00:00:00Z"))
		require.NoError(t, err)
		got, err := d.Get(t.Context(), key, true)
		require.NoError(t, err)
		for attr, value := range map[string]string{
			"status": "1", "updatedAt": "2026-12-01T00:00:00Z",
			"gsi1sk": strings.Replace(want["gsi1sk"].(*types.AttributeValueMemberS).Value, "status_0", "status_1", 1),
			"gsi2sk": strings.Replace(want["gsi2sk"].(*types.AttributeValueMemberS).Value, "status_0", "status_1", 1),
		} {
			want[attr] = text(value)
		}
		require.True(t, attrvalue.SameItem(want, got), "want %v, got %v", want, got)
	})
}

func TestElectroDB_Queries(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		d := electroDB(t, e)
		var repositories []edbRepository
		match := keys.Values{"username": "Ada.L", "isPrivate": false}
		for r, err := range d.repositories.Query(t.Context(), match, entity.On("gsi1pk-gsi1sk-index")) {
			require.NoError(t, err)
			repositories = append(repositories, r)
		}
		require.Len(t, repositories, 1)
		assert.Equal(t, folded("Engine"), repositories[0].Name)

		var issues []edbIssue
		match = keys.Values{"repoOwner": "Ada.L", "repoName": "Engine", "status": "0"}
		for i, err := range d.issues.Query(t.Context(), match, entity.On("gsi2pk-gsi2sk-index"),
			entity.From("createdAt", "2026-11-26T21:00:00Z"), entity.Until("createdAt", "2026-11-27")) {
			require.NoError(t, err)
			issues = append(issues, i)
		}
		assert.Len(t, issues, 2)
	})
}

// A collection of ElectroDB is a partition of an index, below the name of the collection.
func TestElectroDB_Collections(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		d := electroDB(t, e)
		var users []edbUser
		var repositories []edbRepository
		var issues []edbIssue
		var rest []table.Item
		owned := table.Query{Index: "gsi1pk-gsi1sk-index", PK: "$version-control#username_ada.l", SK: keys.PrefixRange("$owned#")}
		for row, err := range d.Query(t.Context(), owned) {
			require.NoError(t, err)
			require.NoError(t, entity.Sort(d.Table, row,
				entity.Into(d.users, &users), entity.Into(d.repositories, &repositories), entity.Into(d.issues, &issues), entity.Raw(&rest)))
		}
		assert.Len(t, users, 1)
		assert.Len(t, repositories, 2)
		assert.Len(t, issues, 1)
		assert.Empty(t, rest)

		issues = nil
		var comments []edbComment
		key := d.issues.Key(edbIssue{Owner: "Ada.L", Name: "Engine", Number: "0007"})
		require.NoError(t, entity.Collect(t.Context(), d.Table, key.PK, entity.Into(d.issues, &issues), entity.Into(d.comments, &comments)))
		assert.Len(t, issues, 1)
		assert.Len(t, comments, 2)
	})
}
