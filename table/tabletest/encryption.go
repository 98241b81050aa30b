package tabletest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	keyARNPrefix = "arn:aws:kms:" + Region + ":000000000000:"
	defaultKey   = "alias/aws/dynamodb"

	encryptedByKMS = "KMS"
)

// encryption is the key with which a table is encrypted.
type encryption struct {
	enabled bool   // with a KMS key; otherwise with a key of DynamoDB itself, which no description mentions
	key     string // as in the request: the ARN or id of a key, or an alias
}

// readEncryption reads SSESpecification. SSEType without Enabled enables encryption with a KMS key.
func readEncryption(in *fields) (encryption, error) {
	f := in.sub("SSESpecification")
	kind := f.text("SSEType")
	e := encryption{enabled: f.flag("Enabled") || !f.has("Enabled") && kind != "", key: f.text("KMSMasterKeyId")}
	disabled := f.has("Enabled") && !e.enabled
	switch {
	case disabled && kind != "":
		return e, parameter("SSEType can not be specified if Enabled is false")
	case disabled && e.key != "":
		return e, parameter("KMSMasterKeyId can not be specified if Enabled is false")
	case kind != "" && kind != encryptedByKMS:
		return e, parameter("SSEType %s is not supported", kind)
	case e.key != "" && kind == "":
		return e, parameter("SSEType KMS is required if KMSMasterKeyId is specified")
	}
	return e, nil
}

// replace checks that e differs from the encryption that a table has. The service compares only ARNs of keys: a table can be encrypted
// anew with the key that it has if the request names it by its id or an alias, or not at all.
func (e encryption) replace(old encryption) error {
	switch {
	case !e.enabled && !old.enabled:
		return parameter("Table is already encrypted by default")
	case e.enabled && old.enabled && e.key == old.arn():
		return parameter("Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change Master Key")
	}
	return nil
}

// describe writes SSEDescription. The answer to the request that changes the encryption has the key that is being replaced, if any.
func (e encryption) describe(o *object, v view) {
	if !e.enabled && !v.encrypting {
		return
	}
	o.object("SSEDescription", func(o *object) {
		status := "ENABLED"
		if v.encrypting {
			status = statusUpdating
		}
		o.text("Status", status)
		if e.enabled {
			o.text("SSEType", encryptedByKMS)
			o.text("KMSMasterKeyArn", e.arn())
		}
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
