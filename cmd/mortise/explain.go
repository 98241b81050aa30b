package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// ifMalformed is what to do about a malformed row of a lock, whose error has the text cause. force does not reset a row that is in order for
// clients with another prefix.
func ifMalformed(cause string) string {
	if strings.Contains(cause, "Config.AttributePrefix") {
		return "set lock.attribute_prefix in --scheme, or " + envLock + "_ATTRIBUTE_PREFIX, to the prefix of the clients that use it"
	}
	return "check --scheme, also its lock.attribute_prefix and lock.session_key; if they are right, mortise force resets the row"
}

// homeRegion is the variable that sets HomeRegion of lock.Config.
const homeRegion = envLock + "_HOME_REGION"

// explain returns the text of an error for people: what is wrong, what to do, and the cause.
func (c *call) explain(err error) string {
	cause := strings.Join(strings.Fields(err.Error()), " ")
	cause = strings.ReplaceAll(cause, "Config.HomeRegion", homeRegion) // the setting as people who do not write Go can make it
	if errors.Is(err, errUsage) {
		of := ""
		if c.command != nil && c.command.name != "help" {
			of = " " + c.command.name
		}
		return fmt.Sprintf("%s (%s help%s explains)", strings.TrimPrefix(cause, errUsage.Error()+": "), program, of)
	}
	name, where := "", ""
	if s, bad := c.settings(); bad == nil {
		name, where = s.schema.Name, s.engine
		if s.engine == engineAWS {
			where = "DynamoDB on AWS"
		}
	}
	advice := ""
	switch {
	case strings.Contains(cause, "no AWS region is configured"):
		return "no AWS region: set AWS_REGION, or a region in the profile of AWS_PROFILE (for a try without AWS: --engine demo)"
	case errors.Is(err, table.ErrCredentials):
		advice = "no AWS credentials, or DynamoDB does not accept them: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case errors.Is(err, table.ErrDenied):
		advice = "the credentials lack a permission (docs/reference.md, Permissions, lists those that are needed)"
	case errors.Is(err, table.ErrNoTable):
		advice = fmt.Sprintf("no table %s, or not the index that is asked for, in %s: name the table with --table or %s, and check the region and the credentials", name, where, envTable)
	case errors.Is(err, table.ErrSchema):
		advice = fmt.Sprintf("table %[1]s has other keys or indexes than it was described with: name its attributes with --scheme or %[2]sPK, %[2]sSK and %[2]sTYPE (mortise table compares)", name, envKeys)
	case errors.Is(err, table.ErrUnreachable):
		advice = "no answer from " + where
	case errors.Is(err, table.ErrThrottled):
		advice = fmt.Sprintf("table %s has not enough capacity", name)
	case errors.Is(err, lock.ErrMultiRegion):
		advice = fmt.Sprintf("table %s has replicas in other regions: name the one region that acquires locks, %s", name, homeRegion)
	case errors.Is(err, lock.ErrNoSession):
		advice = "the holder cannot be asked: the next one who asks for the lock gets it when the lease has ended, and mortise force takes it"
	case errors.Is(err, lock.ErrMalformed):
		advice = "the row at the lock's key is not one that these settings write: " + ifMalformed(cause)
	case errors.Is(err, lock.ErrNotLock):
		advice = "the row at the lock's key is not one that these settings write: check --scheme"
	}
	if advice == "" {
		return cause
	}
	return advice + ": " + cause
}
