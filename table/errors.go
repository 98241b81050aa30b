package table

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/mortise-go/mortise/internal/errs"
)

// Kinds of errors, for [errors.Is]. The cause, with the SDK's own types, is wrapped for [errors.As].
var (
	// ErrNotFound reports that the item does not exist.
	ErrNotFound = errors.New("item not found")
	// ErrCondition reports that a condition of a write did not hold. The error is a *[ConditionError].
	ErrCondition = errors.New("condition does not hold")
	// ErrConflict reports that transactions on the same item kept conflicting until the retry policy ended.
	ErrConflict = errors.New("transaction conflict")
	// ErrThrottled reports that DynamoDB lacked the capacity until the retry policy ended.
	ErrThrottled = errors.New("throttled")
	// ErrUnreachable reports that no answer came, or none that tells what happened: one that cannot be read, or an internal error of
	// DynamoDB. A write may have been applied.
	ErrUnreachable = errors.New("endpoint unreachable")
	// ErrCredentials reports that credentials are missing, expired or refused.
	ErrCredentials = errors.New("credentials missing or refused")
	// ErrDenied reports that the credentials lack a permission.
	ErrDenied = errors.New("access denied")
	// ErrNoTable reports that the table or the index does not exist, or is still being made.
	ErrNoTable = errors.New("no such table or index")
	// ErrInvalid reports an invalid request. It was not sent, or DynamoDB refused it.
	ErrInvalid = errors.New("invalid request")
	// ErrSchema reports that the live table differs from the schema. [Table.Ensure] and [Table.Verify] return it as a
	// *[SchemaError]. A request returns it if the table has other keys.
	ErrSchema = errors.New("table differs from its schema")
)

// Error is the error of a request.
type Error struct {
	Operation string // "PutItem", "TransactWriteItems", …
	Table     string
	Kind      error // one of the package's Err values; nil if none applies
	Err       error // cause
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table: %s on %s", e.Operation, e.Table)
	if e.Kind != nil {
		b.WriteString(": ")
		b.WriteString(e.Kind.Error())
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(withoutValues(e.Err.Error()))
	}
	return b.String()
}

// withoutValues removes the values that DynamoDB quotes at the end of some of its messages, since errors appear in logs.
func withoutValues(text string) string {
	for _, m := range []struct{ quote, without string }{
		{"Input collection [", "Input collection … contains duplicates"},
		{"converted to a numeric value: ", "converted to a numeric value: …"},
		{"attribute type name found; type: ", "attribute type name found; type: …"},
		{"AttributeValue: {", "…"}, // both bounds of a BETWEEN, or a starting key
	} {
		if before, _, ok := strings.Cut(text, m.quote); ok {
			text = before + m.without
		}
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	list := make([]error, 0, 2)
	if e.Kind != nil {
		list = append(list, e.Kind)
	}
	if e.Err != nil {
		list = append(list, e.Err)
	}
	return list
}

// ConditionError reports an operation whose condition did not hold, and the item that was found. It matches
// [ErrCondition].
type ConditionError struct {
	Index int   // index among the operations passed to Write
	Op    Op    // the operation
	Item  Item  // the item that was found; nil if there was none
	Err   error // the meaning, if the operation explains it ([Op.Explain]); otherwise nil

	// Repeated reports that an earlier attempt of the same request got no clear answer. It may have been applied, so
	// Item may be its own effect. It is never set for a transaction, since DynamoDB recognises repeated attempts by
	// their token.
	Repeated bool

	// Pending reports that an earlier attempt of the same transaction got no clear answer. The earlier attempt was not
	// applied before this one was refused, but it may still arrive and be applied.
	Pending bool

	cause error // error of the SDK
}

func (e *ConditionError) Error() string {
	cause := e.Err
	if cause == nil {
		cause = ErrCondition
	}
	return fmt.Sprintf("table: write: operation %d (%s): %v", e.Index, e.Op.kind, cause)
}

// Unwrap returns [ErrCondition], the explanation, and the SDK's error.
func (e *ConditionError) Unwrap() []error {
	list := []error{ErrCondition}
	if e.Err != nil {
		list = append(list, e.Err)
	}
	if e.cause != nil {
		list = append(list, e.cause)
	}
	return list
}

// ConditionErrors reports that the conditions of several operations of one transaction did not hold, in the order of
// the operations. [errors.As] finds the first.
type ConditionErrors []*ConditionError

func (e ConditionErrors) Error() string {
	return fmt.Sprint(errs.Join(e.Unwrap()...))
}

// Unwrap returns the errors of the operations.
func (e ConditionErrors) Unwrap() []error {
	list := make([]error, len(e))
	for i, c := range e {
		list[i] = c
	}
	return list
}

// Conditions returns all condition errors in err, in the order of the operations.
func Conditions(err error) []*ConditionError {
	var several ConditionErrors
	if errors.As(err, &several) {
		return several
	}
	var one *ConditionError
	if errors.As(err, &one) {
		return []*ConditionError{one}
	}
	return nil
}

// MayBeApplied reports whether a write that failed with err may have been applied, wholly or in part, or may yet be. The
// errors of this package's writes cover every attempt of the call, so even a refusal can be unclear: after a lost answer,
// a repeated write can be refused because of its own effect. The error of a [Table.BatchWrite] that has written a part is
// unclear too. Of other errors, [ErrInvalid] and a failed condition are clear.
//
// For the error of lock.Lease.Write or lock.Lease.Commit, check lock.ErrLost first: it means that nothing was written. An
// error of lock.Client.Do can match lock.ErrLost although f has written.
func MayBeApplied(err error) bool {
	may, known := errs.Outcome(err)
	failed := Conditions(err)
	switch {
	case may, slices.ContainsFunc(failed, func(f *ConditionError) bool { return f.Repeated || f.Pending }):
		return true
	case known, len(failed) > 0, errors.Is(err, ErrInvalid):
		return false
	}
	return err != nil
}

// wrap adds the kind and the operation to err.
func wrap(operation, table string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Operation: operation, Table: table, Kind: kindOf(err), Err: err}
}

func kindOf(err error) error {
	for _, kind := range []error{ErrInvalid, ErrNotFound, ErrSchema, ErrUnreachable} {
		if errors.Is(err, kind) {
			return nil // err matches the kind already, and its text contains it
		}
	}
	if isIdentityError(err) { // checked first, since its causes can be API errors of other services
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return ErrCredentials
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return kindOfReasons(canceled.CancellationReasons)
	}
	if tooLarge(err) {
		return ErrInvalid
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		if kind := kindOfRefusal(api.ErrorCode(), api.ErrorMessage()); kind != nil || !internal(api, err) && !unreadable(err) {
			return kind
		}
	}
	var sending *smithyhttp.RequestSendError
	var cut *smithy.CanceledError // the context ended while the SDK waited for the answer
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case api != nil, errors.As(err, &sending), errors.As(err, &cut), unreadable(err):
		return ErrUnreachable
	}
	return nil
}

// unreadable reports whether the answer broke off, or is not one of DynamoDB: a proxy's, for example. The SDK does not repeat these. An error
// of DynamoDB has a code. The SDK puts noCode in the place of one that is missing.
func unreadable(err error) bool {
	var undecoded *smithy.DeserializationError
	var api smithy.APIError
	return errors.As(err, &undecoded) || errors.As(err, &api) && api.ErrorCode() == noCode && !tooLarge(err)
}

const noCode = "UnknownError"

// tooLarge reports whether err is DynamoDB's answer to a request of more than 16 MB. The answer has no error code.
func tooLarge(err error) bool {
	var response *smithyhttp.ResponseError
	return errors.As(err, &response) && response.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}

// RequestMayBeApplied reports whether a single request that failed with err may have been applied: it was sent, and the
// answer, if any, was not a refusal. A write of a [Table] may be several requests, of which err is the last one's: see
// [MayBeApplied].
func RequestMayBeApplied(err error) bool {
	if err == nil || unsent(err) {
		return false
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var api smithy.APIError
	return !errors.As(err, &api) || internal(api, err) || unreadable(err)
}

// internal reports whether api, which is in err, is an internal error of DynamoDB. It does not tell whether the request was applied.
func internal(api smithy.APIError, err error) bool {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() != 0 {
		return response.HTTPStatusCode() >= 500
	}
	return api.ErrorFault() == smithy.FaultServer
}

// unsent reports whether the SDK failed before it sent anything.
func unsent(err error) bool {
	if isIdentityError(err) {
		return true
	}
	var operation *smithy.OperationError
	var sending *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	var cut *smithy.CanceledError
	var api smithy.APIError
	return errors.As(err, &operation) && !errors.As(err, &sending) && !errors.As(err, &response) &&
		!errors.As(err, &cut) && !errors.As(err, &api)
}

// kindOfRefusal returns the kind of a refusal of a request, or of one action of a transaction. DynamoDB has no code for a table or index
// whose keys differ from the schema. Since keys and key conditions are made from the schema alone, messages about them mean just that.
// The messages are those of the service and of DynamoDB Local. A wrong starting key comes from the caller, so it is ErrInvalid.
func kindOfRefusal(code, message string) error {
	kind := kindOfCode(code)
	switch {
	case code == "LimitExceededException" && strings.Contains(message, "per-table limit"): // otherwise, too much is under way at once
		return ErrInvalid
	case !errors.Is(kind, ErrInvalid), strings.Contains(message, "The provided starting key is invalid"):
		return kind
	case strings.Contains(message, "The table does not have the specified index"),
		strings.Contains(message, "Cannot read from backfilling global secondary index"): // the code is that of an invalid request
		return ErrNoTable
	}
	for _, text := range []string{
		"The provided key element does not match the schema",
		"One of the required keys was not given a value",
		"Missing the key ",
		"Type mismatch for key",
		"Query condition missed key schema element",
		"Query key condition not supported",
		"exceeds the number of key attributes defined in the schema", // since October 2026, in some regions
		"must have equality conditions specified in the query",       // of an index with several attributes in one role
		"Condition parameter type does not match schema type",
	} {
		if strings.Contains(message, text) {
			return ErrSchema
		}
	}
	return kind
}

func kindOfCode(code string) error {
	switch code {
	case "ConditionalCheckFailedException", "ConditionalCheckFailed":
		return ErrCondition
	case "TransactionConflictException", "TransactionConflict", "TransactionInProgressException",
		"ReplicatedWriteConflictException":
		return ErrConflict
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingException",
		"ThrottlingError", "Throttling", "RequestLimitExceeded", "LimitExceededException":
		return ErrThrottled
	case "ResourceNotFoundException", "TableNotFoundException", "IndexNotFoundException":
		return ErrNoTable
	case "ValidationException", "ValidationError", "ItemCollectionSizeLimitExceededException",
		"ItemCollectionSizeLimitExceeded", "IdempotentParameterMismatchException", "SerializationException":
		return ErrInvalid
	case "AccessDeniedException", "AccessDenied":
		return ErrDenied
	case "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException",
		"MissingAuthenticationTokenException", "MissingAuthenticationToken", "IncompleteSignatureException",
		"InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken", "NotAuthorized":
		return ErrCredentials
	}
	return nil
}

// kindOfReasons returns the kind of the most relevant reason: one that a retry cannot fix before one that it can.
func kindOfReasons(reasons []types.CancellationReason) error {
	var found error
	for _, r := range reasons {
		switch kind := kindOfRefusal(aws.ToString(r.Code), aws.ToString(r.Message)); {
		case kind == nil:
		case errors.Is(kind, ErrCondition), errors.Is(kind, ErrInvalid), errors.Is(kind, ErrSchema):
			return kind
		default:
			found = kind
		}
	}
	return found
}

// isIdentityError reports whether the SDK could not get credentials. This error has no type, but the SDK's middleware puts
// "get identity: " before its text.
func isIdentityError(err error) bool {
	var hung *timeoutError
	if errors.As(err, &hung) {
		return hung.identity
	}
	var operation *smithy.OperationError
	return errors.As(err, &operation) && operation.Err != nil && strings.HasPrefix(operation.Err.Error(), "get identity: ")
}
