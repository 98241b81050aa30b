package tabletest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	keyARNPrefix = "arn:aws:kms:" + Region + ":000000000000:"
	defaultKey   = "alias/aws/dynamodb"
)

// encryption is the key with which a table is encrypted.
type encryption struct {
	enabled bool   // with a KMS key; otherwise with a key of DynamoDB itself, which no description mentions
	key     string // as in the request: the ARN or id of a key, or an alias
}

// readEncryption reads SSESpecification. SSEType without Enabled enables encryption with a KMS key.
func readEncryption(in *fields) encryption {
	f := in.sub("SSESpecification")
	e := encryption{enabled: f.flag("Enabled") || !f.has("Enabled") && f.has("SSEType"), key: f.text("KMSMasterKeyId")}
	in.err = firstError(in.err, f.err)
	return e
}

func (e encryption) describe(o *object) {
	if !e.enabled {
		return
	}
	o.object("SSEDescription", func(o *object) {
		o.text("Status", "ENABLED")
		o.text("SSEType", "KMS")
		o.text("KMSMasterKeyArn", e.arn())
	})
}

// arn returns the ARN of the key, in whatever form the request named it. The engine has no KMS, so it invents the key behind an
// alias: always the same key for the same alias.
func (e encryption) arn() string {
	name := e.key
	if name == "" {
		name = defaultKey
	}
	if rest, isARN := strings.CutPrefix(name, "arn:"); isARN {
		resource := rest[strings.LastIndex(rest, ":")+1:]
		if !strings.HasPrefix(resource, "alias/") {
			return name
		}
		name = resource
	}
	if strings.HasPrefix(name, "alias/") {
		sum := sha256.Sum256([]byte(name))
		id := hex.EncodeToString(sum[:16])
		name = strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
	}
	return keyARNPrefix + "key/" + name
}
